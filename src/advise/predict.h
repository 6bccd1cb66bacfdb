#pragma once
// What a lever would change, from the account alone: no model runs here.

#include <string>
#include <vector>

#include "lab/advice_record.h"

namespace ridge {

/// A fused operator as the plan knows it.
struct FusedOperator {
  std::string name;
  std::vector<std::string> replaces;
};

/// Every setting that could be tried from where the profile stands: the other activation format, the KV
/// formats, the thread counts that the machine file holds, prefill chunks of a half, of twice and of all
/// prompts, and each fused operator the other way.
std::vector<Lever> levers_of(const Profile& profile, const std::vector<FusedOperator>& fused);

/// Prices one lever. The affected rows get the Cost that they would have, a limit from it, and the time
/// between two readings of their present losses:
///   added:         time' = modelled' + metered losses + unexplained
///   proportional:  time' = (time - metered losses) modelled' / modelled + metered losses
/// where modelled = limit + shape + conversion, the last from the kernel's own rate in the machine file.
/// Where that rate is not known, limit' / attainment with the best and the worst attainment of the operator's
/// rows. A row of which less than half is modelled or metered may also not change at all. Rows above their
/// own limit are left out (case A25); a run dominated by admission is not judged (case A35).
/// With several runs of one workload, each prices the lever and the interval covers all: what differs between
/// runs (waiting for threads above all) is not known better than that.
LeverJudgement predict(const std::vector<Profile>& runs, const Lever& lever,
                       const std::vector<FusedOperator>& fused);
inline LeverJudgement predict(const Profile& profile, const Lever& lever,
                              const std::vector<FusedOperator>& fused) {
  return predict(std::vector<Profile>{profile}, lever, fused);
}

/// Index of the lever to test. Of those with a sure gain, the one with the largest lower bound; else, of
/// those that may gain, the one with the largest upper bound; else, as a check of the account, the nearest of
/// those that should be slower by enough to be seen. -1: the account can price none.
int choose(const std::vector<LeverJudgement>& judgements);

/// Share of the requests' time that is queueing: 0.8 and more is another problem than a kernel's.
double queue_share(const Profile& profile);

}  // namespace ridge
