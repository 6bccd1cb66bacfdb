#pragma once
// AdviceRecord: one piece of advice with everything that lets a reader check it: what was considered, what
// was predicted from the account alone, what the experiment measured, and the verdict. Plain data: src/advise
// fills it, the report and the score file show it.

#include <string>
#include <vector>

#include "lab/profile.h"
#include "lab/statistics.h"

namespace ridge {

/// One setting changed: name "activations", from "f32", to "int8".
struct Lever {
  std::string name, from, to;
};

/// What the account says of one lever. Gains are shares of the workload's time saved: 0.2 is 20 % less time,
/// negative is slower.
struct LeverJudgement {
  Lever lever;
  bool predicted = false;  // false: the account cannot price it, `reason` says why
  bool declined = false;   // its term does not bind, or the gain is too small or not surely positive
  std::string reason;      // why it helps, or why it is declined: in terms of the binding limit
  Interval gain;
};

enum class Decision : uint8_t { kNotRun, kHeld, kRefuted, kNoDecision };
const char* decision_name(Decision d);  // "not run", "held", "refuted", "no decision"

/// Cost in quality of a lever that changes numerics: against the original settings on a fixed text.
struct QualityCost {
  bool measured = false;
  int64_t tokens = 0;
  double kl_mean = 0, kl_max = 0;  // nats a token, KL(original || changed)
  double same_top = 0;             // share of tokens whose most likely token is the same
};

struct AdviceRecord {
  std::vector<LeverJudgement> considered;
  int chosen = -1;  // index into considered, -1: no advice
  std::string summary;

  // The experiment: blocks of original, changed, changed, original.
  std::vector<double> block_gains;                     // 1 - (time changed) / (time original), by block
  double first_original_us = 0, first_changed_us = 0;  // warm-up runs, not part of any figure
  double original_us = 0, changed_us = 0;              // medians
  bool interval_known = false;                         // false: too few blocks for the confidence asked for
  Interval measured;                                   // median and its interval
  double confidence = 0;  // of the interval, after dividing the error by the levers tried
  int levers_tried = 1;
  Decision decision = Decision::kNotRun;
  std::string decision_reason;
  bool changes_numerics = false;
  QualityCost quality;

  Workload workload;
  std::string cpu, isa, date, commit;
  int threads = 0;
  const LeverJudgement* choice() const {
    return chosen < 0 ? nullptr : &considered[static_cast<size_t>(chosen)];
  }
};

}  // namespace ridge
