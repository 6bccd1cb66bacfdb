#pragma once
// Debugging a wrong token: the same prompt through two configurations, call by call. Each call is held to its
// operator's own reference and bound, on the inputs that it had; and the two are held to each other.

#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "ops/judge.h"

namespace ridge {

/// One call and how near its bound it came.
struct JudgedOutput {
  std::string label, op, kernel;  // "layer 3 gate", "linear"
  Judgement judgement;
};
/// What one configuration computed: the prompt's chunks and one decode step.
struct JudgedSide {
  int64_t calls = 0;                  // judged
  std::vector<std::string> unjudged;  // operators without a reference, each once
  std::optional<JudgedOutput> first;  // the first call beyond its bound
  std::optional<JudgedOutput> worst;  // the one nearest its bound, or furthest beyond
};

/// How far one call's outputs are apart.
struct Difference {
  std::string label, op, operand;
  std::string kernel_a, kernel_b;
  double error = 0;  // ||a - b|| / ||a||; infinity where one is not finite
};
struct Comparison {
  JudgedSide a, b;
  std::vector<Difference> apart;      // the ten largest, largest first
  std::optional<Difference> too_far;  // the first beyond `bound`, in the order of the calls
  int64_t outputs = 0;                // held to each other; calls that only one side has are left out
};

/// Runs the prompt and one decode step on both; both sessions must be of one model and idle. Outputs of the
/// prompt's steps are held to each other: codes times their scales, and of the cache the rows that were
/// written. `bound`: the largest difference that is not too far; none: any. Errors: those of the engines;
/// kInvalidArgument when no call is common to both; kCancelled once a stop is requested (base/stop.h).
Result<Comparison> compare_sessions(Session& a, Session& b, const std::vector<int32_t>& prompt,
                                    std::optional<double> bound = std::nullopt);

}  // namespace ridge
