// What a first run leaves to do for those that are measured. Case A28.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/generate.h"

namespace ridge {
namespace {

/// The plans that steps ran, by id: one that is made anew has another.
struct PlansRun : StepObserver {
  std::set<uint64_t> plans;
  int64_t most_decodes = 0;
  void on_step(const StepFacts& facts, const StepPlan& plan) override {
    plans.insert(plan.id());
    most_decodes = std::max(most_decodes, facts.decode_tokens);
  }
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
};

TEST(WarmUp, A28_a_first_run_makes_every_plan_that_the_same_run_needs_later) {
  // Chunks of 8, of which the last have 5 and 3 tokens; answers end one by one: batches of 3, 2 and 1.
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 64, o.max_sequences = 3, o.prefill_tokens = 8;
  const auto engine = engine_for(tiny, o);
  const auto run = [&] {
    PlansRun seen;
    engine->set_observer(&seen);
    generate(*engine, {request(random_prompt(21, 1), 9), request(random_prompt(11, 2), 6),
                       request(random_prompt(1, 3), 12), request(random_prompt(4, 4), 3)});
    engine->set_observer(nullptr);
    return seen;
  };
  const PlansRun first = run();
  EXPECT_GE(first.plans.size(), 5u);
  EXPECT_EQ(first.most_decodes, 3) << "four requests, and no more at a time than sequences";
  for (int again = 0; again < 3; ++again) EXPECT_EQ(run().plans, first.plans);
}

}  // namespace
}  // namespace ridge
