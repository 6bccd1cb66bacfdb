#include "advise/goal.h"

#include <algorithm>
#include <cmath>

namespace ridge {

namespace {

std::string ms(double us) {
  return text(std::round(us / 10) / 100, " ms");
}

/// The steps up to the first token: decodes come after it. Without stages, whose queueing is judged apart.
Profile before_the_first_token(const Profile& p) {
  Profile first = p;
  first.stages.clear();
  std::erase_if(first.phases, [](const ProfilePhase& phase) { return phase.phase == Phase::kDecode; });
  return first;
}

}  // namespace

const char* goal_name(GoalVerdict v) {
  static const char* const kNames[] = {"met", "reachable", "open", "unreachable"};
  return kNames[static_cast<int>(v)];
}

TtftGoal judge_goal(const Profile& p, double goal_us, const std::vector<FusedOperator>& fused) {
  TtftGoal g;
  g.goal_us = goal_us, g.now_us = p.ttft_us;
  if (!p.stages.empty() && p.ttft_us > 0)
    g.queue_share = request_times(p.stages, p.stages.front().request).queue_us / p.ttft_us;
  const Profile first = before_the_first_token(p);
  double steps_us = 0;
  for (const ProfilePhase& phase : first.phases) steps_us += phase.wall_us;
  g.nearest_us = g.now_us;
  double sure_us = g.now_us;
  for (const Lever& lever : levers_of(p, fused)) {
    const LeverJudgement j = predict(first, lever, fused);
    if (!j.predicted) continue;
    sure_us = std::min(sure_us, g.now_us - j.gain.low * steps_us);
    if (const double at_best = g.now_us - j.gain.high * steps_us; at_best < g.nearest_us)
      g.nearest_us = at_best, g.lever = lever;
  }
  g.verdict = g.now_us <= goal_us       ? GoalVerdict::kMet
              : sure_us <= goal_us      ? GoalVerdict::kReachable
              : g.nearest_us <= goal_us ? GoalVerdict::kOpen
                                        : GoalVerdict::kUnreachable;
  return g;
}

std::string goal_sentence(const TtftGoal& g) {
  std::string out = text("time to first token ", ms(g.now_us), ", wanted ", ms(g.goal_us), ": ",
                         g.verdict == GoalVerdict::kOpen ? "may be reached" : goal_name(g.verdict));
  if (g.verdict == GoalVerdict::kMet) return out;
  if (g.lever.name.empty())
    out += ", no single change of configuration takes anything off";
  else
    out += text(g.verdict == GoalVerdict::kUnreachable ? ", the nearest is " : ", at best ", ms(g.nearest_us),
                " with ", option_of(g.lever));
  return out + text("; more replicas would take off the ", std::round(1000 * g.queue_share) / 10,
                    " % of waiting in the queue", g.queue_share < kWorthwhileGain ? ": refused" : "");
}

}  // namespace ridge
