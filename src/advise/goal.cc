#include "advise/goal.h"

#include <algorithm>
#include <cmath>

#include "base/print_to.h"

namespace ridge {

namespace {

/// Milliseconds with at least three digits that count, none of them an exponent's.
std::string ms(double us) {
  const double value = us / 1e3;
  const int leading = value > 0 ? static_cast<int>(std::floor(std::log10(value))) : 0;
  std::string out;
  print_to(out, "%.*f", std::clamp(2 - leading, 2, 9), value);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out + " ms";
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

TtftGoal judge_goal(const std::vector<Profile>& runs, double goal_us,
                    const std::vector<FusedOperator>& fused) {
  const Profile& p = runs[runs.size() / 2];
  TtftGoal g;
  g.goal_us = goal_us, g.now_us = p.ttft_us;
  if (!p.stages.empty() && p.ttft_us > 0)
    g.queue_share = request_times(p.stages, p.stages.front().request).queue_us / p.ttft_us;
  std::vector<Profile> first;
  for (const Profile& run : runs) first.push_back(before_the_first_token(run));
  const double steps_us = first[runs.size() / 2].wall_us();
  g.nearest_us = g.now_us;
  double sure_us = g.now_us, open_us = g.now_us;
  for (const Lever& lever : levers_of(p, fused)) {
    const LeverJudgement j = predict(first, lever, fused);
    if (!j.predicted || j.gain.high < kWorthwhileGain) continue;
    const double at_best = g.now_us - j.gain.high * steps_us;
    open_us = std::min(open_us, at_best);
    if (j.declined) continue;  // it may gain: enough for no verdict, too little for a name
    sure_us = std::min(sure_us, g.now_us - j.gain.low * steps_us);
    if (at_best < g.nearest_us) g.nearest_us = at_best, g.lever = lever;
  }
  g.verdict = g.now_us <= goal_us  ? GoalVerdict::kMet
              : sure_us <= goal_us ? GoalVerdict::kReachable
              : open_us <= goal_us ? GoalVerdict::kOpen
                                   : GoalVerdict::kUnreachable;
  return g;
}

std::string goal_sentence(const TtftGoal& g) {
  std::string out = text("time to first token ", ms(g.now_us), ", wanted ", ms(g.goal_us), ": ",
                         g.verdict == GoalVerdict::kOpen ? "may be reached" : goal_name(g.verdict));
  if (g.verdict == GoalVerdict::kMet) return out;
  if (g.verdict == GoalVerdict::kOpen && g.nearest_us > g.goal_us)
    out += ", by a change whose gain is not sure";
  else if (g.lever.name.empty())
    out += ", no single change of configuration surely takes anything off";
  else
    out += text(g.verdict == GoalVerdict::kUnreachable ? ", the nearest is " : ", at best ", ms(g.nearest_us),
                " with ", option_of(g.lever));
  return out + text("; more replicas would take off the ", std::round(1000 * g.queue_share) / 10,
                    " % of waiting in the queue", g.queue_share < kWorthwhileGain ? ": refused" : "");
}

}  // namespace ridge
