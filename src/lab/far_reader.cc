#include "lab/far_reader.h"

#include <algorithm>
#include <array>
#include <map>

#include "lab/probe.h"
#include "lab/probe_loops.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {

namespace {

/// What one call reads of one operand.
struct Piece {
  const std::byte* data = nullptr;
  int64_t bytes = 0;
  size_t call = 0;
};

/// Operands smaller than this are not worth a loop's set-up: norms, a row of the embedding.
constexpr int64_t kLeastBytes = 16 << 10;

/// Of the time that a thread worked, the share for which it had no core.
class CoreLoss {
 public:
  void begin() { wall_ -= now_ns(), cpu_ -= thread_ns(); }
  void end() { wall_ += now_ns(), cpu_ += thread_ns(); }
  double share() const { return wall_ > 0 ? 1 - static_cast<double>(cpu_) / static_cast<double>(wall_) : 0; }

 private:
  int64_t wall_ = 0, cpu_ = 0;
};
/// What the system itself takes stays below.
constexpr double kMostLost = 0.05;

std::vector<Piece> pieces_of(const StepPlan& plan) {
  std::vector<Piece> out;
  for (size_t c = 0; c < plan.calls().size(); ++c) {
    const AnyCall& call = plan.calls()[c].call;
    const Cost cost = plan.cost(c);
    int64_t left = 0;
    for (const DataClass pool : {DataClass::kWeights, DataClass::kScales})
      left += cost.read_bytes[static_cast<size_t>(pool)];
    const auto& operands = call.op->operands();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].role != Role::kIn || operands[i].data_class != DataClass::kWeights) continue;
      const Tensor& t = call.op->operand(call.args.get(), static_cast<int>(i));
      if (!t) continue;
      // An embedding reads some rows of what a tensor holds.
      const int64_t bytes = std::min(left, t.bytes());
      left -= bytes;
      if (bytes >= kLeastBytes) out.push_back({static_cast<const std::byte*>(t.data), bytes, c});
    }
  }
  return out;
}

class CpuFarReader {
 public:
  explicit CpuFarReader(CpuDevice& device)
      : device_(device), stream_(device), loops_(probe_loops_of(device.target().isa)) {}

  FarReading read(const StepPlan& plan) {
    const auto [found, fresh] = pieces_.try_emplace(plan.id());
    if (fresh) found->second = pieces_of(plan);
    const std::vector<Piece>& pieces = found->second;
    const int threads = device_.team().threads();
    FarReading out;
    out.stream_us.resize(plan.calls().size(), 0.0), out.piece_us.resize(plan.calls().size(), 0.0);
    // Ticks by thread and piece.
    std::vector<std::vector<int64_t>> took(static_cast<size_t>(threads), std::vector<int64_t>(pieces.size()));
    const auto timed = [&](size_t piece, int thread, int active) {
      const int64_t from = ticks();
      share(pieces[piece], thread, active);
      took[static_cast<size_t>(thread)][piece] = ticks() - from;
    };
    struct alignas(64) Lost : CoreLoss {};
    std::vector<Lost> lost(static_cast<size_t>(threads));
    const Instant begin = Instant::now();
    device_.team().run_together(threads, [&](int thread) {
      CoreLoss& mine = lost[static_cast<size_t>(thread)];
      mine.begin();
      for (size_t p = 0; p < pieces.size(); ++p) timed(p, thread, threads);
      mine.end();
    });
    add(pieces, took, &out.stream_us);
    for (auto& of_thread : took) std::fill(of_thread.begin(), of_thread.end(), 0);
    for (size_t p = 0; p < pieces.size(); ++p) {
      const int active = std::min(threads, stream_.threads_for(static_cast<double>(pieces[p].bytes)));
      device_.team().run_together(active, [&](int thread) { timed(p, thread, active); });
      out.bytes += pieces[p].bytes;
    }
    add(pieces, took, &out.piece_us);
    const double us = ns_per_tick(begin, Instant::now()) / 1e3 / threads;
    for (auto* times : {&out.stream_us, &out.piece_us})
      for (double& t : *times) t *= us;
    for (const CoreLoss& l : lost) out.disturbed |= l.share() > kMostLost;
    out.flops = arithmetic(&out.disturbed), out.near_read = near_read(&out.disturbed);
    return out;
  }

 private:
  /// The probe's loops, on every thread at once.
  double arithmetic(bool* disturbed) {
    return rate(
        [&](int) {
          float sink = 0;
          return loops_.f32(kF32Rounds, &sink);
        },
        &f32_passes_, disturbed);
  }
  double near_read(bool* disturbed) {
    const int threads = device_.team().threads();
    const int64_t each = std::max<int64_t>(kLeastSet / threads / 1024 * 1024, 1024);
    near_.resize(static_cast<size_t>(threads));
    return rate(
        [&](int thread) {
          (void)loops_.read(near_[static_cast<size_t>(thread)].bytes.data(), each);
          return each;
        },
        &near_passes_, disturbed);
  }

  /// What all threads do a second of what `pass(thread)` returns: in some 50 us, long beside their start and
  /// short beside a step. `passes` is kept from reading to reading.
  template <class Pass>
  double rate(const Pass& pass, int64_t* passes, bool* disturbed) {
    constexpr int64_t kLeastNs = 50000;
    struct alignas(64) Spell {
      int64_t done = 0, ticks = 0;
      CoreLoss loss;
    };
    std::vector<Spell> spells(static_cast<size_t>(device_.team().threads()));
    const auto spell = [&](int thread) {
      Spell s;
      s.loss.begin();
      const int64_t from = ticks();
      for (int64_t i = 0; i < *passes; ++i) s.done += pass(thread);
      s.ticks = ticks() - from;
      s.loss.end();
      spells[static_cast<size_t>(thread)] = s;
    };
    double ns = 0;
    for (;; *passes *= 2) {
      const Instant begin = Instant::now();
      device_.team().run_together(device_.team().threads(), spell);
      const Instant end = Instant::now();
      ns = ns_per_tick(begin, end);
      if (end.ns - begin.ns >= kLeastNs) break;
    }
    double all = 0;
    for (const Spell& s : spells) {
      *disturbed |= s.loss.share() > kMostLost;
      all += static_cast<double>(s.done) / (static_cast<double>(s.ticks) * ns) * 1e9;
    }
    return all;
  }

  static void add(const std::vector<Piece>& pieces, const std::vector<std::vector<int64_t>>& took,
                  std::vector<double>* by_call) {
    for (const auto& of_thread : took)
      for (size_t p = 0; p < pieces.size(); ++p)
        (*by_call)[pieces[p].call] += static_cast<double>(of_thread[p]);
  }

  void share(const Piece& p, int thread, int threads) {
    // What the loop reads: multiples of 1024 bytes, so that its four streams begin with whole lines.
    const int64_t first = p.bytes * thread / threads / 1024 * 1024,
                  last = p.bytes * (thread + 1) / threads / 1024 * 1024;
    (void)loops_.read(p.data + first, last - first);
  }

  CpuDevice& device_;
  CpuStream stream_;
  ProbeLoops loops_;
  std::map<uint64_t, std::vector<Piece>> pieces_;  // by plan
  static constexpr int64_t kF32Rounds = 4096;      // beside which the sum at their end is nothing
  int64_t f32_passes_ = 1, near_passes_ = 1;
  struct alignas(64) NearSet {
    std::array<std::byte, kLeastSet> bytes{};
  };
  std::vector<NearSet> near_;  // by thread
};

}  // namespace

FarReader far_reader(Device& device) {
  if (device.target().backend != "cpu") return {};
  auto reader = std::make_shared<CpuFarReader>(static_cast<CpuDevice&>(device));
  return [reader](const StepPlan& plan) { return reader->read(plan); };
}

}  // namespace ridge
