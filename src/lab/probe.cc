#include "lab/probe.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>

#include "account/recorder.h"
#include "base/build.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/pressure.h"
#include "base/stop.h"
#include "lab/probe_kernels.h"
#include "lab/probe_loops.h"
#include "lab/statistics.h"
#include "ops/any_operator.h"

namespace ridge {

ProbeLoops probe_loops_of(Isa isa) {
  return isa == Isa::avx512 ? avx512::probe_loops()
         : isa == Isa::avx2 ? avx2::probe_loops()
                            : scalar::probe_loops();
}

int64_t thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

namespace {

/// Points are measured in several sweeps over all of them and in short rounds: what disturbs the machine for
/// a second spoils one sweep, and what takes a core away for some milliseconds spoils some rounds.
class Probe {
 public:
  /// From `hurry_ns` on what has been measured is not measured again; at `end_ns` all stops.
  Probe(const ProbeOptions& options, CpuDevice& device, Buffer memory, int64_t hurry_ns, int64_t end_ns)
      : o_(options),
        hurry_ns_(hurry_ns),
        end_ns_(end_ns),
        device_(device),
        loops_(probe_loops_of(device.target().isa)),
        memory_(std::move(memory)) {}

  /// For ascending numbers of threads.
  std::vector<ThreadCeilings> measure(const std::vector<int>& threads) {
    std::vector<ThreadCeilings> out;
    for (const int t : threads) out.push_back(blank(t));
    for (int sweep = 0; sweep < kSweeps; ++sweep)
      for (size_t i = 0; i < out.size() && !enough(sweep > 0); ++i) {
        improve(&out[i]);
        if (o_.progress)
          o_.progress("ceilings",
                      0.6 * (sweep + static_cast<double>(i + 1) / static_cast<double>(out.size())) / kSweeps);
      }
    for (size_t i = 0; i < out.size(); ++i) close(&out[i], i > 0 ? &out[i - 1] : nullptr);
    return out;
  }

 private:
  static constexpr int kSweeps = 4;
  // Much longer than a meeting, much shorter than a turn of the scheduler.
  static constexpr double kRoundNs = 100e3;
  // A pass over a set larger than this takes milliseconds: it is timed in segments.
  static constexpr int64_t kSegment = 8 << 20, kWhole = 32 << 20;

  ThreadCeilings blank(int threads) const {
    ThreadCeilings c;
    c.threads = threads;
    for (int64_t bytes = kLeastSet; bytes <= o_.largest_bytes; bytes *= 2)
      c.curve.push_back({bytes, 0, 0, 0});
    for (int64_t bytes = 16 << 10; bytes <= std::min<int64_t>(o_.largest_bytes, 16 << 20); bytes *= 4)
      c.pieces.push_back({bytes, 0});
    c.barrier_us = threads > 1 ? HUGE_VAL : 0;
    return c;
  }

  bool enough(bool have_some) const {
    const int64_t now = now_ns();
    return stop_requested() || now > end_ns_ || (have_some && now > hurry_ns_);
  }

  void improve(ThreadCeilings* c) {
    for (BandwidthPoint& p : c->curve)
      if (!enough(p.copy > 0)) bandwidth(c->threads, &p);
    for (PiecePoint& p : c->pieces)
      if (!enough(p.read > 0)) p.read = std::max(p.read, piece(c->threads, p.bytes));
    const std::pair<Engine, int64_t (*)(int64_t, float*)> units[] = {
        {Engine::kF32, loops_.f32}, {Engine::kBf16, loops_.bf16}, {Engine::kInt8, loops_.int8}};
    for (const auto& [engine, loop] : units) {
      double& flops = c->flops[static_cast<size_t>(engine)];
      if (!enough(flops > 0)) flops = std::max(flops, arithmetic(c->threads, loop));
    }
    if (c->threads > 1 && !enough(c->barrier_us < HUGE_VAL))
      c->barrier_us = std::min(c->barrier_us, barrier(c->threads));
  }

  /// A ceiling holds for every smaller working set, which a cache nearer by holds as well, for every larger
  /// piece, and for more threads. What is measured below that was disturbed.
  static void close(ThreadCeilings* c, const ThreadCeilings* fewer) {
    const auto raise = [](BandwidthPoint* p, const BandwidthPoint& to) {
      p->read = std::max(p->read, to.read), p->write = std::max(p->write, to.write);
      p->copy = std::max(p->copy, to.copy);
    };
    for (size_t i = c->curve.size(); i-- > 0;) {
      if (fewer != nullptr) raise(&c->curve[i], fewer->curve[i]);
      if (i + 1 < c->curve.size()) raise(&c->curve[i], c->curve[i + 1]);
    }
    for (size_t i = 1; i < c->pieces.size(); ++i)
      c->pieces[i].read = std::max(c->pieces[i].read, c->pieces[i - 1].read);
    for (size_t e = 0; fewer != nullptr && e < kEngines; ++e)
      c->flops[e] = std::max(c->flops[e], fewer->flops[e]);
  }

  /// The best rate of the rounds of one sweep: units / seconds.
  template <class Pass>
  double best(double units_a_pass, const Pass& pass) {
    pass();
    const int64_t begin = now_ns();
    pass();
    double least = std::max<double>(1, static_cast<double>(now_ns() - begin));
    const auto repeats = static_cast<int64_t>(std::clamp(kRoundNs / least, 1.0, 1e5));
    const auto rounds =
        static_cast<int64_t>(std::max(3.0, o_.seconds_per_point * 1e9 / kSweeps / std::max(kRoundNs, least)));
    for (int64_t round = 0; round < rounds && !enough(true); ++round) {
      const int64_t start = now_ns();
      for (int64_t r = 0; r < repeats; ++r) pass();
      least = std::min(least, static_cast<double>(now_ns() - start) / static_cast<double>(repeats));
    }
    return units_a_pass / least * 1e9;
  }

  /// Of a set larger than the caches, which is walked segment by segment: nine in ten segments are slower.
  /// The very best would be luck, the mean what else ran.
  template <class Body>
  double walked(int threads, int64_t bytes, const Body& body) {
    const int64_t each = kSegment / threads / 2048 * 2048;
    std::vector<double> rates;
    for (int walk = 0; walk < 2 && !(walk > 0 && enough(true)); ++walk) {
      rates.clear();  // the first walk finds the caches as the point before left them
      for (int64_t at = 0; at + kSegment <= bytes && !(at > 0 && enough(true)); at += kSegment) {
        const int64_t begin = now_ns();
        device_.team().run_together(threads, [&](int t) { body(memory_.begin() + at + t * each, each); });
        rates.push_back(static_cast<double>(each * threads) / static_cast<double>(now_ns() - begin));
      }
    }
    return percentile(rates, 0.9);
  }

  void bandwidth(int threads, BandwidthPoint* p) {
    const int64_t each = p->bytes / threads / 2048 * 2048;
    // Small sets are passed several times between meetings, or the meeting would be what is measured.
    const int64_t inner = std::max<int64_t>(1, (1 << 20) / each);
    const auto gbs = [&](const auto& body) {
      if (p->bytes > kWhole) return walked(threads, p->bytes, body);
      return best(static_cast<double>(each * threads * inner),
                  [&] {
                    device_.team().run_together(threads, [&](int t) {
                      for (int64_t i = 0; i < inner; ++i) body(memory_.begin() + t * each, each);
                    });
                  }) /
             1e9;
    };
    // The sum is kept nowhere: its line would go from thread to thread with every pass.
    const auto read = [&](std::byte* m, int64_t n) { (void)loops_.read(m, n); };
    p->read = std::max(p->read, gbs(read));
    p->write = std::max(p->write, gbs([&](std::byte* m, int64_t n) { loops_.write(m, n); }));
    p->copy = std::max(p->copy, gbs([&](std::byte* m, int64_t n) { loops_.copy(m, m + n / 2, n / 2); }));
  }

  /// Reads of memory that no cache holds, `bytes` between two meetings; GB/s.
  double piece(int threads, int64_t bytes) {
    const int64_t each = bytes / threads / 1024 * 1024, pieces = std::max<int64_t>(1, (4 << 20) / bytes);
    return best(static_cast<double>(each * threads * pieces),
                [&] {
                  for (int64_t i = 0; i < pieces; ++i, next_ += bytes) {
                    if (next_ + bytes > memory_.bytes()) next_ = 0;
                    device_.team().run_together(
                        threads, [&](int t) { (void)loops_.read(memory_.begin() + next_ + t * each, each); });
                  }
                }) /
           1e9;
  }

  /// Operations of all threads over the time that each had a core: registers are shared with nobody, so a
  /// thread that had to wait for its core would have been as fast.
  double arithmetic(int threads, int64_t (*loop)(int64_t, float*)) {
    constexpr int64_t kChained = 20000;
    float sink = 1;
    const auto operations = static_cast<double>(loop(1, &sink)) * kChained;
    if (operations == 0) return 0;
    std::vector<double> rates(static_cast<size_t>(threads), 0.0);
    best(operations, [&] {
      device_.team().run_together(threads, [&](int t) {
        float mine = 1;
        const int64_t begin = thread_ns();
        loop(kChained, &mine);
        const auto ns = static_cast<double>(std::max<int64_t>(1, thread_ns() - begin));
        rates[static_cast<size_t>(t)] = std::max(rates[static_cast<size_t>(t)], operations / ns * 1e9);
        std::atomic<float> keep{mine};
      });
    });
    return std::accumulate(rates.begin(), rates.end(), 0.0);
  }

  double barrier(int threads) {
    return 1e6 / best(1, [&] { device_.team().run_together(threads, [](int) {}); });
  }

  const ProbeOptions& o_;
  int64_t hurry_ns_, end_ns_;
  CpuDevice& device_;
  ProbeLoops loops_;
  Buffer memory_;
  int64_t next_ = 0;  // of the pieces
};

/// How the first core's clock is governed; "unknown" where the system does not say (most virtual machines).
std::string governor() {
  const auto content = read_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", 4096);
  std::string name = content.ok() ? *content : "";
  while (!name.empty() && name.back() <= ' ') name.pop_back();
  return name.empty() ? "unknown" : name;
}

Status unfinished(const ProbeOptions& o) {
  return declined("the machine is not idle: the probe was not through after ", o.end_after_s,
                  " s; nothing was kept: probe again when it is");
}

}  // namespace

std::string built_compiler() {
  return text("gcc-compatible ", __VERSION__);
}

Result<Machine> probe_cpu(const ProbeOptions& options) {
  const int64_t begin = now_ns();
  const auto after = [&](double seconds) { return begin + static_cast<int64_t>(seconds * 1e9); };
  const int64_t hurry = after(options.hurry_after_s), end = after(options.end_after_s);
  const double waited = waited_for_cores_us();
  const int threads = options.threads == 0 ? allowed_cores() : options.threads;
  CpuOptions cpu;
  cpu.threads = threads, cpu.isa = options.isa;
  RIDGE_ASSIGN(const auto device, CpuDevice::create(cpu));
  RIDGE_ASSIGN(Buffer memory, Buffer::allocate(options.largest_bytes, Pages::kHuge));
  // Touched in pieces: the system takes a second and more to give so much.
  constexpr int64_t kTouched = 16 << 20;
  for (int64_t at = 0; at < memory.bytes(); at += kTouched) {
    RIDGE_TRY(check_stop());
    if (now_ns() > end) return unfinished(options);
    std::memset(memory.begin() + at, 1, static_cast<size_t>(std::min(kTouched, memory.bytes() - at)));
  }
  Machine m;
  const MachineIdentity id = this_machine(isa_name(device->target().isa));
  m.cpu = id.cpu, m.isa = id.isa, m.build = id.build, m.compiler = built_compiler();
  m.commit = built_commit(), m.date = utc_now(), m.cores = allowed_cores(), m.governor = governor();
  if (getloadavg(&m.load, 1) != 1) m.load = 0;
  Probe probe(options, *device, std::move(memory), hurry, end);
  m.by_threads = probe.measure(threads > 1 ? std::vector<int>{1, threads} : std::vector<int>{1});
  RIDGE_TRY(check_stop());
  if (now_ns() > end) return unfinished(options);
  CpuOptions one = cpu;
  one.threads = 1;
  RIDGE_ASSIGN(const auto alone, CpuDevice::create(one));
  PaceOptions pace;
  pace.seconds_per_point = options.seconds_per_point / 6;
  pace.hurry_ns = hurry, pace.end_ns = end;
  if (options.progress)
    pace.progress = [&](double share) { options.progress("kernels", 0.6 + 0.39 * share); };
  auto kernels = measure_pace(*alone, operators(), pace);
  if (kernels.status().code() == Code::kDeclined && now_ns() > end) return unfinished(options);
  RIDGE_TRY(kernels.status());
  m.kernels = std::move(*kernels);
  if (options.progress) options.progress("done", 1);
  m.seconds = static_cast<double>(now_ns() - begin) / 1e9;
  if (waited >= 0) m.pressure = std::min(1.0, (waited_for_cores_us() - waited) / 1e6 / m.seconds);
  return m;
}

namespace {
bool is_cpu(const Device& device) {
  return device.target().backend == "cpu";
}
}  // namespace

MachineIdentity identity_of(const Device& device) {
  if (is_cpu(device)) return this_machine(isa_name(device.target().isa));
  return this_machine(device.target().backend, device.describe());
}
std::string machine_path_of(const Device& device) {
  return default_machine_path(is_cpu(device) ? isa_name(device.target().isa) : device.target().backend);
}

Result<Machine> probe_device(Device& device, const ProbeOptions& options) {
  if (is_cpu(device)) return probe_cpu(options);
  const int64_t begin = now_ns();
  Machine m;
  const MachineIdentity id = identity_of(device);
  m.cpu = id.cpu, m.isa = id.isa, m.build = id.build, m.compiler = built_compiler();
  m.commit = built_commit(), m.date = utc_now(), m.cores = allowed_cores(), m.governor = "as found";
  for (const Backend& b : backends())
    if (device.target().backend == b.name && b.probe != nullptr) RIDGE_TRY(b.probe(device, &m));
  if (m.by_threads.empty()) return declined("device ", device.target().backend, " has no probe");
  if (options.progress) options.progress("done", 1);
  m.seconds = static_cast<double>(now_ns() - begin) / 1e9;
  return m;
}

}  // namespace ridge
