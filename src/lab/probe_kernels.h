#pragma once
// The pace of kernels: each on one thread, on operands in that core's own caches.

#include <vector>

#include "machine/pace.h"
#include "ops/any_operator.h"
#include "runtime/device.h"

namespace ridge {

struct PaceOptions {
  double seconds_per_point = 0.005;
  // On now_ns()'s clock: from the first on a point is a few calls, at the second there is an error.
  int64_t hurry_ns = INT64_MAX, end_ns = INT64_MAX;
  std::function<void(double share)> progress;  // after each operator
};

/// Every pace case of `operators`, for each format of weights or KV and for activations in 8 bits where a
/// kernel takes them. A point is the least time of many calls. Calls that only the reference takes are left
/// out. Errors: those of the operators; kDeclined at end_ns.
Result<std::vector<KernelPace>> measure_pace(Device& device, const std::vector<AnyOperator*>& operators,
                                             const PaceOptions& options);

}  // namespace ridge
