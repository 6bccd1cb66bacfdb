#pragma once
// Debugging a wrong token: the same prompt through two configurations, call by call.

#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"

namespace ridge {

/// How far one call's outputs are apart.
struct Difference {
  std::string label, op;  // "layer 3 gate", "linear"
  std::string kernel_a, kernel_b;
  double error = 0;  // ||a - b|| / ||a|| over the largest such output; infinity where one is not finite
};
struct Comparison {
  std::optional<Difference> first;  // the first beyond the bound, in the order of the calls
  std::vector<Difference> worst;    // the ten largest, largest first
  int64_t outputs = 0;              // compared; calls that only one side has (fused, quantizing) are left out
};

/// Runs the prompt's prefill step on both; both sessions must be of one model and idle.
/// Errors: those of the engines; kInvalidArgument when no call is common to both; kCancelled once a stop is
/// requested (base/stop.h).
Result<Comparison> compare_sessions(Session& a, Session& b, const std::vector<int32_t>& prompt, double bound);

}  // namespace ridge
