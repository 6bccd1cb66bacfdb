#pragma once
// Verdict: which limit of the measured machine binds a call, how near it runs, and where the rest of its time
// went.

#include <array>
#include <string>

#include "account/cost.h"
#include "machine/machine.h"

namespace ridge {

/// One vocabulary of losses for every device. limit + losses = measured, exactly; kUnexplained has either
/// sign.
enum class Loss : uint8_t {
  kLaunch,
  kShape,
  kOccupancy,
  kTail,
  kImbalance,
  kWait,
  kBarrier,
  kConversion,
  kHostGap,
  kUnexplained
};
inline constexpr int kLosses = 10;
const char* loss_name(Loss loss);  // "launch", "shape", ...

enum class Bound : uint8_t { kNothing, kCompute, kFarMemory, kNearMemory };
const char* bound_name(Bound bound);  // "nothing", "compute", "memory", "cache"

/// What a verdict needs beside the Cost.
struct Occasion {
  double measured_us = 0;
  /// Bytes that the step touches between two uses of this call's weights and KV: the level they come from.
  int64_t reuse_bytes = 0;
  // Measured by the device's meter.
  double wait_us = 0, barrier_us = 0, imbalance_us = 0, occupancy_us = 0;
  /// What the kernel itself takes for these calls when no operand comes from beyond a core's own caches
  /// (machine/pace.h): measured by the probe, never on this run. 0: not measured.
  double kernel_us = 0;
  double exposed = 0;  // KernelPace::exposed
  /// What the level of reuse_bytes gave while the call's step was profiled, bytes a second; 0: not read, the
  /// machine's curve stands.
  double far_read_rate = 0;
  /// What reading these calls' weights took then, in the pieces that the threads read between two meetings;
  /// 0: not read, the machine's pieces stand.
  double piece_us = 0;
  double launch_us =
      0;  // what as many launches that do nothing take one after the other; 0: calls are not launched
  int64_t calls = 1;  // how many calls measured_us and the Cost are the sum of
};

struct Verdict {
  double limit_us = 0, attainment = 0;  // attainment = limit / measured
  Bound bound = Bound::kNothing;
  double compute_us = 0, far_us = 0, near_us = 0;  // the three terms; limit is their maximum
  std::array<double, kLosses> loss_us{};
  /// Above its own limit by more than 5 %, or below a thousandth of it: the count, the level or a unit is
  /// wrong, and no advice follows from this row.
  bool defect = false;
  double& loss(Loss l) { return loss_us[static_cast<size_t>(l)]; }
  double loss(Loss l) const { return loss_us[static_cast<size_t>(l)]; }
};

/// "" or what a defect says.
const char* defect_text(const Verdict& verdict);

/// limit = max(arithmetic / peak, far bytes / bandwidth of their level, near bytes / bandwidth of theirs),
/// where weights, scales and KV are far (their level is that of reuse_bytes) and activations and indices near
/// (written just before: the level of the call's own bytes). Arithmetic of different units adds up: they
/// share the issue ports. Losses, each at most what is left of measured - limit, in this order: launch,
/// barrier, imbalance, occupancy as metered; shape, the pieces between two meetings being too short for full
/// bandwidth (Machine pieces), and padding executed; conversion, what the kernel itself takes (kernel_us),
/// and does not hide behind reading, beyond limit and shape. None of them is made from the measured time:
/// what a run takes longer than all of these is unexplained (docs/account.md). Source: Williams, Waterman and
/// Patterson 2009, "Roofline", extended by level as in the cache-aware roofline (Ilic et al. 2014).
Verdict judge(const Cost& cost, const ThreadCeilings& ceilings, const Occasion& occasion);

}  // namespace ridge
