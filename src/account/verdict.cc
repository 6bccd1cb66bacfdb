#include "account/verdict.h"

#include <algorithm>

namespace ridge {

// What ceilings repeat to; and less than any kernel of ours reaches on a machine of its own (case A16).
static constexpr double kMostAttained = 1.05, kLeastAttained = 1e-3;

const char* loss_name(Loss loss) {
  static const char* const kNames[] = {"launch", "shape",   "occupancy",  "tail",     "imbalance",
                                       "wait",   "barrier", "conversion", "host_gap", "unexplained"};
  return kNames[static_cast<int>(loss)];
}
const char* bound_name(Bound bound) {
  static const char* const kNames[] = {"nothing", "compute", "memory", "cache"};
  return kNames[static_cast<int>(bound)];
}

const char* defect_text(const Verdict& v) {
  return !v.defect ? ""
         : v.attainment > kMostAttained
             ? "above its limit: count or level is wrong"
             : "below a thousandth of its limit: unit or count is wrong, or the run stood still";
}

namespace {

bool is_far(size_t c) {
  const auto pool = static_cast<DataClass>(c);
  return pool == DataClass::kWeights || pool == DataClass::kScales || pool == DataClass::kKv;
}

double over(double amount, double rate) {
  return rate > 0 ? amount / rate * 1e6 : 0;
}

double arithmetic_us(const std::array<int64_t, kEngines>& flops, const ThreadCeilings& c) {
  double us = 0;
  for (size_t e = 0; e < kEngines; ++e) {
    // A set without the unit does the work in f32.
    const double peak = c.flops[e] > 0 ? c.flops[e] : c.flops[static_cast<size_t>(Engine::kF32)];
    us += over(static_cast<double>(flops[e]), peak);
  }
  return us;
}

}  // namespace

Verdict judge(const Cost& cost, const ThreadCeilings& c, const Occasion& o) {
  Verdict v;
  double far_read = 0, far_written = 0, near_read = 0, near_written = 0;
  for (size_t i = 0; i < kDataClasses; ++i) {
    (is_far(i) ? far_read : near_read) += static_cast<double>(cost.read_bytes[i]);
    (is_far(i) ? far_written : near_written) += static_cast<double>(cost.written_bytes[i]);
  }
  const auto near_bytes =
      static_cast<int64_t>((near_read + near_written) / static_cast<double>(std::max<int64_t>(1, o.calls)));
  v.compute_us = arithmetic_us(cost.flops, c);
  const double probed = read_bandwidth(c, o.reuse_bytes),
               read = o.far_read_rate > 0 ? o.far_read_rate : probed;
  // What slows reads slows writes.
  const double drift = probed > 0 ? read / probed : 1;
  v.far_us = over(far_read, read) + over(far_written, drift * write_bandwidth(c, o.reuse_bytes));
  v.near_us =
      over(near_read, read_bandwidth(c, near_bytes)) + over(near_written, write_bandwidth(c, near_bytes));
  v.limit_us = std::max({v.compute_us, v.far_us, v.near_us});
  if (v.limit_us > 0)
    v.bound = v.limit_us == v.compute_us ? Bound::kCompute
              : v.limit_us == v.far_us   ? Bound::kFarMemory
                                         : Bound::kNearMemory;
  v.attainment = o.measured_us > 0 ? v.limit_us / o.measured_us : 0;
  v.defect = v.attainment > kMostAttained || (v.limit_us > 0 && v.attainment < kLeastAttained);

  double left = o.measured_us - v.limit_us;
  const auto charge = [&](Loss loss, double us) {
    const double taken = std::clamp(us, 0.0, std::max(0.0, left));
    v.loss(loss) += taken;
    left -= taken;
  };
  charge(Loss::kLaunch, o.launch_us);
  charge(Loss::kWait, o.wait_us);
  charge(Loss::kBarrier, o.barrier_us);
  charge(Loss::kImbalance, o.imbalance_us);
  charge(Loss::kOccupancy, o.occupancy_us);
  // Padding that is done while memory is waited for costs nothing.
  charge(Loss::kShape, arithmetic_us(cost.executed_flops, c) - v.limit_us);
  // Far reads in pieces: as read now, or probed, where the data does come from main memory.
  if (o.piece_us > 0) {
    charge(Loss::kShape, o.piece_us - v.limit_us - v.loss(Loss::kShape));
  } else if (v.bound == Bound::kFarMemory && !c.curve.empty() && o.reuse_bytes > c.curve.back().bytes / 2) {
    const auto piece = static_cast<int64_t>(far_read / static_cast<double>(std::max<int64_t>(1, o.calls)));
    charge(Loss::kShape, over(far_read, piece_bandwidth(c, piece)) - v.far_us);
  }
  // The kernel's own time holds its padding; of it and of reading the longer counts, and what of the shorter
  // is known not to be hidden behind it.
  const double reading = std::max(v.far_us, o.piece_us);
  const double both = std::max(o.kernel_us, reading) + o.exposed * std::min(o.kernel_us, reading);
  if (o.kernel_us > 0) charge(Loss::kConversion, both - v.limit_us - v.loss(Loss::kShape));
  v.loss(Loss::kUnexplained) = left;
  return v;
}

}  // namespace ridge
