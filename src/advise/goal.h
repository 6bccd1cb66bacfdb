#pragma once
// A time to the first token that somebody wants, judged from the account.

#include "advise/predict.h"

namespace ridge {

/// Whether one change of configuration takes the first request's time to its first token, that of the middle
/// one of `runs`, to `goal_us`. Levers are priced on the steps before that token alone, over all runs; none
/// is named whose gain there is declined. More replicas take off waiting in the queue and nothing else: the
/// share of it is part of the verdict. Case A41.
TtftGoal judge_goal(const std::vector<Profile>& runs, double goal_us,
                    const std::vector<FusedOperator>& fused);
inline TtftGoal judge_goal(const Profile& profile, double goal_us, const std::vector<FusedOperator>& fused) {
  return judge_goal(std::vector<Profile>{profile}, goal_us, fused);
}

/// "time to first token 8.1 ms, wanted 5.0 ms: unreachable, the nearest is 6.2 ms with …".
std::string goal_sentence(const TtftGoal& goal);
const char* goal_name(GoalVerdict v);  // "met", "reachable", "open", "unreachable"

}  // namespace ridge
