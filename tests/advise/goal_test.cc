// A41: a wanted time to the first token is judged by what the account says, and an unreachable one is called
// so.

#include "advise/goal.h"

#include <gtest/gtest.h>

#include "advise/fused.h"
#include "lab/example_profile.h"

namespace ridge {
namespace {

constexpr int64_t kMs = 1000000;

/// The example's one request on an idle server: its prefill steps are its time to the first token.
Profile idle() {
  Profile p = example_profile();
  const auto end_ns = static_cast<int64_t>(p.phases[0].wall_us * 1e3);
  p.stages = {
      {1, Stage::kQueue, 0, 0}, {1, Stage::kPrefill, 0, end_ns}, {1, Stage::kSampling, end_ns, end_ns}};
  p.ttft_us = p.phases[0].wall_us;
  return p;
}

TEST(Goal, A41_on_an_idle_server_more_replicas_are_refused) {
  const TtftGoal g = judge_goal(idle(), 0.9 * idle().ttft_us, kFused);
  EXPECT_EQ(g.queue_share, 0);
  EXPECT_NE(goal_sentence(g).find("more replicas would take off the 0 % of waiting in the queue: refused"),
            std::string::npos)
      << goal_sentence(g);
}

TEST(Goal, A41_an_unreachable_goal_is_called_unreachable_with_the_nearest_point) {
  const Profile p = idle();
  const TtftGoal g = judge_goal(p, 1, kFused);
  EXPECT_EQ(g.verdict, GoalVerdict::kUnreachable);
  // The largest promise of all levers, on the steps before the first token alone.
  Profile first = p;
  first.phases.pop_back(), first.stages.clear();
  double most = 0;
  for (const Lever& l : levers_of(p, kFused))
    if (const LeverJudgement j = predict(first, l, kFused); !j.declined) most = std::max(most, j.gain.high);
  ASSERT_GT(most, 0.5);
  EXPECT_NEAR(g.nearest_us, p.ttft_us * (1 - most), 1e-6 * p.ttft_us);
  EXPECT_EQ(g.lever.name, "activations");
  const std::string says = goal_sentence(g);
  EXPECT_NE(says.find("unreachable, the nearest is "), std::string::npos) << says;
  EXPECT_NE(says.find("--activations int8"), std::string::npos) << says;
}

TEST(Goal, A41_no_lever_is_named_whose_gain_is_declined) {
  int tempting = 0;  // levers that seem to take something off, and are declined
  for (size_t kept = 0; kept < idle().phases[0].rows.size(); ++kept) {
    Profile p = idle();
    for (size_t r = 0; r < p.phases[0].rows.size(); ++r) p.phases[0].rows[r].verdict.defect |= r != kept;
    const TtftGoal g = judge_goal(p, 1, kFused);
    Profile first = p;
    first.phases.pop_back(), first.stages.clear();
    double most = 0;
    for (const Lever& l : levers_of(p, kFused)) {
      const LeverJudgement j = predict(first, l, kFused);
      if (!j.declined) most = std::max(most, j.gain.high);
      tempting += j.predicted && j.declined && j.gain.high > 0;
    }
    EXPECT_NEAR(g.nearest_us, p.ttft_us * (1 - most), 1e-6 * p.ttft_us);
    EXPECT_EQ(g.lever.name.empty(), most == 0);
  }
  EXPECT_GT(tempting, 0);
}

TEST(Goal, A41_times_keep_their_digits_however_small_or_large) {
  TtftGoal g = judge_goal(idle(), 1, kFused);
  for (const auto& [us, says] : {std::pair(1.0, "wanted 0.001 ms:"),
                                 {1e8, "wanted 100000 ms:"},
                                 {1234.5, "wanted 1.23 ms:"},
                                 {13276.0, "wanted 13.28 ms:"},
                                 {5000.0, "wanted 5 ms:"}}) {
    g.goal_us = us;
    EXPECT_NE(goal_sentence(g).find(says), std::string::npos) << goal_sentence(g);
  }
}

TEST(Goal, A41_a_goal_between_the_promises_is_reachable_or_open) {
  const Profile p = idle();
  const TtftGoal best = judge_goal(p, 1, kFused);
  EXPECT_EQ(judge_goal(p, p.ttft_us, kFused).verdict, GoalVerdict::kMet);
  EXPECT_EQ(judge_goal(p, 0.99 * p.ttft_us, kFused).verdict, GoalVerdict::kReachable);
  EXPECT_EQ(judge_goal(p, best.nearest_us, kFused).verdict, GoalVerdict::kOpen);
  EXPECT_EQ(judge_goal(p, 0.999 * best.nearest_us, kFused).verdict, GoalVerdict::kUnreachable);
}

TEST(Goal, A41_where_the_queue_takes_the_time_replicas_take_off_its_share) {
  Profile p = idle();
  const int64_t steps_ns = p.stages[1].end_ns, queue_ns = 3 * steps_ns;
  p.stages = {{1, Stage::kQueue, 0, queue_ns},
              {1, Stage::kPrefill, queue_ns, queue_ns + steps_ns},
              {1, Stage::kSampling, queue_ns + steps_ns, queue_ns + steps_ns}};
  p.ttft_us *= 4;
  const TtftGoal g = judge_goal(p, 2 * kMs / 1e3, kFused);
  EXPECT_NEAR(g.queue_share, 0.75, 1e-3);
  const std::string says = goal_sentence(g);
  EXPECT_NE(says.find("more replicas would take off the 75 % of waiting in the queue"), std::string::npos)
      << says;
  EXPECT_EQ(says.find("refused"), std::string::npos) << says;
}

TEST(Goal, A41_without_a_priced_lever_nothing_takes_anything_off) {
  Profile p = idle();
  for (ProfilePhase& phase : p.phases)
    for (ProfileRow& r : phase.rows) r.verdict.defect = true;
  const TtftGoal g = judge_goal(p, 1, kFused);
  EXPECT_EQ(g.verdict, GoalVerdict::kUnreachable);
  EXPECT_NE(goal_sentence(g).find("no single change"), std::string::npos) << goal_sentence(g);
}

}  // namespace
}  // namespace ridge
