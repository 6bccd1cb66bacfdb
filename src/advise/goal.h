#pragma once
// A time to the first token that somebody wants, judged from the account.

#include "advise/predict.h"

namespace ridge {

/// Whether one change of configuration takes the first request's time to its first token to `goal_us`. Levers
/// are priced on the steps before that token alone. More replicas take off waiting in the queue and nothing
/// else: the share of it is part of the verdict. Case A41.
TtftGoal judge_goal(const Profile& profile, double goal_us, const std::vector<FusedOperator>& fused);

/// "time to first token 8.1 ms, wanted 5.0 ms: unreachable, the nearest is 6.2 ms with …".
std::string goal_sentence(const TtftGoal& goal);
const char* goal_name(GoalVerdict v);  // "met", "reachable", "open", "unreachable"

}  // namespace ridge
