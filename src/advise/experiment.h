#pragma once
// The experiment that could refute a prediction: two arms, interleaved, paired, and a verdict.

#include <functional>

#include "lab/advice_record.h"
#include "runtime/device_state.h"

namespace ridge {

/// One run of one arm; microseconds.
using Arm = std::function<Result<double>()>;

struct ExperimentOptions {
  double budget_s = 20;  // of all runs; at least one block runs
  int max_blocks = 40;
  double confidence = 0.95;  // of all intervals together, when several levers are tried
  int levers_tried = 1;
  std::function<bool()> interrupted;  // asked between runs
  std::function<void(double share)> progress;
  std::function<int64_t()> clock_ns;  // default now_ns(); tests bring their own
  StateReader state;                  // of the device, read after each block; default: nothing is known
};

/// Blocks of original, changed, changed, original: a drift of the clock that is linear in time falls on both
/// alike (case A33), and each block's record holds clock and power. One run of each arm before that is kept
/// apart (case A28). Fills the measured part of `record` and decides.
Status run_experiment(const Arm& original, const Arm& changed, const ExperimentOptions& options,
                      AdviceRecord* record);

/// Fewest blocks that an interval of the median needs at this confidence.
int64_t least_blocks(double confidence);

/// held: the measured interval excludes 0, meets the predicted one, and the sign is the predicted one, if one
/// was predicted; refuted: it lies outside of the predicted one, or excludes 0 with another sign; no
/// decision: it includes 0 and meets the predicted one, or there is none.
void decide(AdviceRecord* record);

}  // namespace ridge
