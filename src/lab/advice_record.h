#pragma once
// AdviceRecord: one piece of advice with everything that lets a reader check it: what was considered, what
// was predicted from the account alone, what the experiment measured, and the verdict. Plain data: src/advise
// fills it, the report and the score file show it.

#include <optional>
#include <string>
#include <vector>

#include "lab/profile.h"
#include "lab/statistics.h"
#include "runtime/device_state.h"

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
  bool declined = false;   // not proposed: its term does not bind, or no sure gain of kWorthwhileGain
  std::string reason;      // why it helps, or why it is declined: in terms of the binding limit
  Interval gain;
};

/// Whether a predicted gain says if time is saved or lost: an interval with 0 in it does not.
inline bool predicts_sign(const Interval& gain) {
  return !gain.contains(0);
}

/// Less than this share of the workload's time is not worth a change.
inline constexpr double kWorthwhileGain = 0.01;
/// A gain is sure if its least is no less: below it, a prediction says no more than that nothing is lost.
inline constexpr double kSureGain = 0.005;

/// What a test of a lever is for.
enum class Purpose : uint8_t {
  kGain,    // the account is sure of a gain
  kOpen,    // it may gain, the account alone cannot tell, or has no price for it
  kControl  // it should gain less than kWorthwhileGain: the test shows whether the present setting is kept
            // rightly
};
const char* purpose_name(Purpose p);  // "gain", "open", "control"
/// Half a sentence for a reader.
const char* purpose_text(const LeverJudgement& judgement);
Purpose purpose_of(const LeverJudgement& judgement);

enum class Decision : uint8_t { kNotRun, kHeld, kRefuted, kNoDecision };
const char* decision_name(Decision d);  // "not run", "held", "refuted", "no decision"

/// Cost in quality of a lever that changes numerics: against the original settings on a fixed text.
struct QualityCost {
  bool measured = false;
  int64_t tokens = 0;
  double kl_mean = 0, kl_max = 0;  // nats a token, KL(original || changed)
  double same_top = 0;             // share of tokens whose most likely token is the same
};

/// A wanted time to the first token, of the first request.
enum class GoalVerdict : uint8_t {
  kMet,
  kReachable,   // some lever surely gets there
  kOpen,        // some lever may
  kUnreachable  // none does at its best
};
struct TtftGoal {
  double goal_us = 0, now_us = 0;
  double queue_share = 0;  // of now_us
  double nearest_us = 0;   // with `lever` at its best; now_us when none takes anything off
  Lever lever;
  GoalVerdict verdict = GoalVerdict::kMet;
};

struct AdviceRecord {
  std::vector<LeverJudgement> considered;
  int chosen = -1;  // index into considered, -1: the account can price no lever

  // The experiment: blocks of original, changed, changed, original.
  std::vector<double> block_gains;                     // 1 - (time changed) / (time original), by block
  std::vector<DeviceState> block_states;               // of the original's device, by block, at its end
  double first_original_us = 0, first_changed_us = 0;  // warm-up runs, not part of any figure
  double original_us = 0, changed_us = 0;              // medians
  double pressure = -1;         // share of its time in which a runnable thread waited for a core; -1: unknown
  bool interval_known = false;  // false: too few blocks for the confidence asked for
  Interval measured;            // median and its interval
  double confidence = 0;        // of the interval, after dividing the error by the levers tried
  int levers_tried = 1;
  Decision decision = Decision::kNotRun;
  std::string decision_reason;
  bool changes_numerics = false;
  QualityCost quality;

  std::optional<TtftGoal> goal;  // where one was asked for

  Workload workload;
  std::string cpu, isa, date, commit, command;
  std::string machine_date, machine_disturbed, build,
      compiler;  // of the machine file; the second "" if it was idle
  int threads = 0;
  const LeverJudgement* choice() const {
    return chosen < 0 ? nullptr : &considered[static_cast<size_t>(chosen)];
  }
};

/// What follows for whoever runs the workload. A gain must be measured, not only predicted: its interval
/// excludes 0 and its median is kWorthwhileGain or more.
enum class Advice : uint8_t { kNone, kUntested, kKeep, kChange };
const char* advice_name(Advice a);  // "none", "untested", "keep", "change"
Advice advice_of(const AdviceRecord& record);

/// It as a sentence: "set --kv q8", "keep kv f16".
std::string advice_sentence(const AdviceRecord& record);

/// "the clock went from 3.25 to 3.05 GHz between the first third of the blocks and the last" where their
/// medians differ by more than 2 %; else "".
std::string clock_text(const AdviceRecord& record);

/// The command line's way to a setting: "--kv q8", "--no-fuse add_rms_norm".
std::string option_of(const Lever& lever);

}  // namespace ridge
