#include "machine/plausible.h"

#include <cmath>

namespace ridge {

namespace {

// Beyond any machine by orders of magnitude; a unit mistaken for another is caught.
constexpr double kLeastGbs = 0.01, kMostGbs = 1e6, kMostFlops = 1e18, kMostBarrierUs = 1e6;
// Above this share of its time with a thread waiting, a probe's figures are somebody else's.
constexpr double kPressure = 0.1;
// Two threads have twice one thread's units; below 0.9 of a single one's the second thread was not there.
constexpr double kLeastGain = 0.9;

Status in_range(const std::string& field, double value, double least, double most) {
  if (value >= least && value <= most) return {};  // false for NaN
  return corrupt(field, " is ", value, ": a machine has ", least, " to ", most);
}

Status check_threads(const ThreadCeilings& t, const std::string& at) {
  RIDGE_TRY(in_range(at + ".barrier_us", t.barrier_us, 0, kMostBarrierUs));
  for (size_t e = 0; e < t.flops.size(); ++e)
    RIDGE_TRY(in_range(text(at, ".flops.", engine_name(static_cast<Engine>(e))), t.flops[e], 0, kMostFlops));
  if (t.curve.empty()) return corrupt(at, ".bandwidth_gbs is empty");
  int64_t before = 0;
  for (size_t i = 0; i < t.curve.size(); ++i) {
    const BandwidthPoint& p = t.curve[i];
    const std::string point = text(at, ".bandwidth_gbs[", i, "]");
    if (p.bytes <= before) return corrupt(point, ".bytes is ", p.bytes, ", not above ", before);
    before = p.bytes;
    RIDGE_TRY(in_range(point + ".read", p.read, kLeastGbs, kMostGbs));
    RIDGE_TRY(in_range(point + ".write", p.write, kLeastGbs, kMostGbs));
    RIDGE_TRY(in_range(point + ".copy", p.copy, kLeastGbs, kMostGbs));
  }
  before = 0;
  for (size_t i = 0; i < t.pieces.size(); ++i) {
    const PiecePoint& p = t.pieces[i];
    const std::string point = text(at, ".piece_read_gbs[", i, "]");
    if (p.bytes <= before) return corrupt(point, ".bytes is ", p.bytes, ", not above ", before);
    before = p.bytes;
    RIDGE_TRY(in_range(point + ".read", p.read, kLeastGbs, kMostGbs));
  }
  return {};
}

Status check_pace(const KernelPace& k, const std::string& at) {
  RIDGE_TRY(in_range(text(at, ".start_us"), k.start_us, 0, 1e9));
  RIDGE_TRY(in_range(text(at, ".exposed"), k.exposed, 0, 1));
  for (size_t i = 0; i < k.points.size(); ++i) {
    const std::string point = text(at, ".points[", i, "]");
    RIDGE_TRY(in_range(point + ".work", k.points[i].work, 0, 1e30));
    RIDGE_TRY(in_range(point + ".us", k.points[i].us, 0, 1e12));
  }
  return {};
}

}  // namespace

Status check_machine(const Machine& m) {
  if (m.by_threads.empty()) return corrupt("by_threads is empty");
  int before = 0;
  for (size_t i = 0; i < m.by_threads.size(); ++i) {
    const std::string at = text("by_threads[", i, "]");
    const ThreadCeilings& t = m.by_threads[i];
    if (t.threads <= before) return corrupt(at, ".threads is ", t.threads, ", not above ", before);
    before = t.threads;
    RIDGE_TRY(check_threads(t, at));
  }
  for (size_t i = 0; i < m.kernels.size(); ++i) RIDGE_TRY(check_pace(m.kernels[i], text("kernels[", i, "]")));
  return {};
}

std::string disturbed(const Machine& m) {
  if (m.pressure > kPressure)
    return text("a thread waited for a core in ", std::round(100 * m.pressure), " % of the probe's time");
  if (m.seconds > kProbeSeconds)
    return text("the probe took ", std::round(m.seconds), " s, and left repetitions out after ",
                kProbeSeconds, " s");
  for (size_t i = 1; i < m.by_threads.size(); ++i) {
    const ThreadCeilings &fewer = m.by_threads[i - 1], &more = m.by_threads[i];
    for (size_t e = 0; e < more.flops.size(); ++e)
      if (more.flops[e] < kLeastGain * fewer.flops[e])
        return text(more.threads, " threads reach ", more.flops[e], " operations a second of ",
                    engine_name(static_cast<Engine>(e)), ", ", fewer.threads, " reach ", fewer.flops[e]);
  }
  return "";
}

}  // namespace ridge
