#pragma once
// From a model and a workload to one tested piece of advice.

#include <functional>

#include "advise/predict.h"
#include "engine/session.h"
#include "lab/workload.h"
#include "machine/machine.h"

namespace ridge {

/// Of the text on which a lever that changes numerics is compared.
inline constexpr int64_t kMostQualityTokens = 1024;

struct AdviseOptions {
  std::vector<Lever>
      levers;  // to test, in this order (`from` is filled in); none: the one that choose() names
  WorkloadOptions workload;
  double budget_s = 20;  // of the experiment, for each lever
  double confidence = 0.95;
  bool experiment = true;  // false: predict only
  int64_t quality_tokens = 48;
  std::optional<double> ttft_goal_us;  // judged beside the levers
  std::string commit, date, command;
  std::function<bool()> interrupted;
  std::function<void(const char* what, double share)> progress;
};

struct Advised {
  Profile profile;
  std::vector<AdviceRecord> records;  // one a lever tested; one without a choice when none has a price
};

/// "kv=q8" -> {"kv", "", "q8"}. kInvalidArgument naming what there is on `backend`.
Result<Lever> parse_lever(const std::string& written, const std::string& backend = "cpu");

/// The options with one setting changed. kInvalidArgument for a lever or value that there is not.
Status apply_lever(const Lever& lever, SessionOptions* options);

/// Does the lever change what is computed, not only how fast?
bool changes_numerics(const Lever& lever);

/// Every operator that names what it replaces.
std::vector<FusedOperator> fused_operators();

/// Profiles the workload on the session's engine, prices the levers, and tests those asked for (or the chosen
/// one) against it. `options` must be those that the session was opened with.
Result<Advised> advise(Session& session, const SessionOptions& options, const Machine& machine,
                       const AdviseOptions& wanted);

}  // namespace ridge
