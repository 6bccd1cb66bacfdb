#include "advise/row_change.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace ridge {

std::vector<int64_t> shape_dims(const std::string& shape) {
  std::vector<int64_t> dims;
  for (size_t at = 0; at < shape.size() && shape[at] >= '0' && shape[at] <= '9';) {
    dims.push_back(std::atoll(shape.c_str() + at));
    at = shape.find('x', at);
    if (at == std::string::npos) break;
    ++at;
  }
  return dims;
}

static std::vector<std::string> words(const std::string& formats) {
  std::istringstream in(formats);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}
bool is_quantized_format(const std::string& formats) {
  const auto all = words(formats);
  return std::any_of(all.begin(), all.end(), [](const auto& w) { return w[0] == 'q'; });
}
bool has_format(const std::string& formats, const std::string& one) {
  const auto all = words(formats);
  return std::find(all.begin(), all.end(), one) != all.end();
}
std::string with_format(const std::string& formats, const std::string& from, const std::string& to) {
  std::string out;
  for (const std::string& w : words(formats)) out += text(out.empty() ? "" : " ", w == from ? to : w);
  return out;
}
std::string without_format(const std::string& formats, const std::string& one) {
  std::string out;
  for (const std::string& w : words(formats))
    if (w != one) out += text(out.empty() ? "" : " ", w);
  return out;
}

RowChange unchanged(const Profile& p, const ProfileRow& r) {
  return {r.cost, r.formats, r.pace_dims, p.threads, 1, false};
}

namespace {

/// What the calls take at the pace of whatever kernel of the row's operator takes those formats.
void set_pace(const Machine& m, const ProfileRow& r, const RowChange& c, Occasion* o) {
  const auto n = static_cast<double>(o->calls);
  const PaceQuery query{r.op, "", c.formats, c.pace_dims};
  o->kernel_us = n * kernel_us(m, query, pace_work(c.cost) / n, c.threads);
  if (const KernelPace* k = nearest_pace(m, query)) o->exposed = k->exposed;
}

double each_call(const Verdict& v) {
  return v.loss(Loss::kLaunch) + v.loss(Loss::kBarrier) + v.loss(Loss::kHostGap);
}
/// What threads had not to do while others worked: shares of the work, however many calls it comes in.
double shares(const Verdict& v) {
  return v.loss(Loss::kOccupancy) + v.loss(Loss::kTail) + v.loss(Loss::kImbalance);
}
double metered(const Verdict& v) {
  return each_call(v) + shares(v) + v.loss(Loss::kWait);
}
double modelled(const Verdict& v) {
  return v.limit_us + v.loss(Loss::kShape) + v.loss(Loss::kConversion);
}

/// limit' at the best and the worst attainment that the operator's other rows show.
Interval by_attainment(const ProfilePhase& phase, const ProfileRow& row, double limit_us) {
  double best = 0, worst = 1;
  for (const ProfileRow& r : phase.rows)
    if (r.op == row.op && !r.verdict.defect && r.verdict.attainment > 0)
      best = std::max(best, r.verdict.attainment), worst = std::min(worst, r.verdict.attainment);
  if (best == 0) best = 1;
  return {limit_us / std::min(1.0, best), 0, limit_us / worst};
}

// Rows of one run repeat about so well; as many tokens in other pieces are other calls, of shapes that no run
// has measured, and the model of those is less sure.
constexpr double kRepeats = 0.02, kOtherPieces = 0.05;

}  // namespace

Interval changed_time(const Profile& p, const ProfilePhase& phase, const ProfileRow& row,
                      const RowChange& c) {
  Occasion o = row.occasion;
  o.measured_us = 1e18;  // room for every loss: what is wanted is the model, not its share of a time
  o.barrier_us = o.imbalance_us = o.occupancy_us = 0;
  const double now = modelled(judge(row.cost, p.machine.at(p.threads), o));
  o.calls = std::max<int64_t>(1, std::llround(static_cast<double>(row.calls) * c.calls_ratio));
  set_pace(p.machine, row, c, &o);
  constexpr auto kWeights = static_cast<size_t>(DataClass::kWeights);
  if (row.cost.read_bytes[kWeights] > 0)
    o.piece_us *=
        static_cast<double>(c.cost.read_bytes[kWeights]) / static_cast<double>(row.cost.read_bytes[kWeights]);
  const bool known = o.kernel_us > 0;
  if (!known && !c.other_kernel) o.kernel_us = row.occasion.kernel_us * c.calls_ratio;
  const Verdict then = judge(c.cost, p.machine.at(c.threads), o);

  const double will = modelled(then);
  // One thread meets nobody. But what looks like waiting for the others may be the machine being busy, which
  // delays each thread by itself: then a share by threads stays.
  const bool alone = c.threads == 1 && p.threads > 1;
  const double wait = row.verdict.loss(Loss::kWait);
  const double kept = alone ? 0
                            : each_call(row.verdict) * c.calls_ratio + shares(row.verdict) +
                                  wait * std::min(1.0, c.calls_ratio);
  const double rest = row.time_us - metered(row.verdict);
  Interval t{will + kept + (rest - now), 0, 0};
  t.high = t.low;
  const auto include = [&](double us) { t.low = std::min(t.low, us), t.high = std::max(t.high, us); };
  // What is unexplained of a row that mostly is comes from elsewhere: no model of the row scales it.
  const bool unexplained = row.verdict.loss(Loss::kUnexplained) > 0.5 * row.time_us;
  if (now > 0 && !unexplained) include(rest * will / now + kept);
  if (alone) include(t.high + metered(row.verdict) / p.threads);
  // Threads wait to be woken, once a call, and for a core that something else has, which takes its share of
  // any time.
  if (!alone) include(t.high + wait * std::abs(1 - c.calls_ratio));
  if (c.other_kernel && !known) {
    const Interval comparable = by_attainment(phase, row, then.limit_us);
    include(comparable.low), include(comparable.high);
  }
  // Mostly unexplained: what takes the time may be something that the lever does not touch; unless another
  // kernel will run, of a rate that is known.
  if (unexplained && !(c.other_kernel && known)) include(row.time_us);
  const double unsure = (c.calls_ratio == 1 ? kRepeats : kOtherPieces) * row.time_us;
  t.low = std::max(t.low - unsure, then.limit_us);
  t.high = std::max(t.high + unsure, t.low);
  t.value = (t.low + t.high) / 2;
  return t;
}

}  // namespace ridge
