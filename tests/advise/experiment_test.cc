#include "advise/experiment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "advise/score.h"

namespace ridge {
namespace {

AdviceRecord record_of(double low, double value, double high) {
  AdviceRecord r;
  r.considered = {{{"kv", "f16", "q8"}, true, false, "", {low, value, high}}};
  r.chosen = 0;
  return r;
}

/// Runs against a clock that each run moves on by its own time; `drift` is what a run is slower than the one
/// before.
struct Bench {
  double original_us = 100, changed_us = 100, drift = 0;
  int64_t clock_ns = 0;
  int runs = 0;
  std::string order;
  Result<double> run(bool changed) {
    const double us = (changed ? changed_us : original_us) * (1 + drift * runs++);
    order += changed ? 'B' : 'A';
    clock_ns += static_cast<int64_t>(us * 1e3);
    return us;
  }
  AdviceRecord test(AdviceRecord r, double budget_us, int levers = 1, double confidence = 0.95) {
    ExperimentOptions o;
    o.budget_s = budget_us / 1e6, o.levers_tried = levers, o.confidence = confidence;
    o.clock_ns = [this] { return clock_ns; };
    EXPECT_TRUE(run_experiment([this] { return run(false); }, [this] { return run(true); }, o, &r).ok());
    return r;
  }
};

TEST(Experiment, A33_a_linear_drift_does_not_look_like_a_gain) {
  Bench b;
  b.drift = 0.01;
  const AdviceRecord r = b.test(record_of(-0.1, 0.1, 0.3), 10'000);
  EXPECT_EQ(b.order.substr(0, 10), "ABABBAABBA") << "one run of each first, then blocks";
  for (const double gain : r.block_gains) EXPECT_NEAR(gain, 0, 1e-12);
  EXPECT_EQ(r.decision, Decision::kNoDecision);
}

TEST(Experiment, A33_each_block_says_what_clock_and_power_were) {
  Bench b;
  int reading = 0;
  ExperimentOptions o;
  o.max_blocks = 3, o.clock_ns = [&] { return b.clock_ns; };
  // 3000 MHz, 100 MHz less at each reading; a counter of energy tells nothing the first time.
  o.state = [&]() -> DeviceState {
    const int at = reading++;
    return {3000.0 - 100 * at, at > 0 ? std::optional<double>(50 + at) : std::nullopt};
  };
  const auto tested = [&] {
    AdviceRecord r = record_of(0.1, 0.2, 0.3);
    reading = 0;
    EXPECT_TRUE(run_experiment([&] { return b.run(false); }, [&] { return b.run(true); }, o, &r).ok());
    return r;
  };
  const AdviceRecord r = tested();
  const auto j = nlohmann::json::parse(advice_json(r))["experiment"];
  EXPECT_EQ(j["block_clock_mhz"], nlohmann::json({2900, 2800, 2700}));
  EXPECT_EQ(j["block_power_w"], nlohmann::json({51, 52, 53}));
  const char* const said =
      "the clock went from 2.90 to 2.70 GHz between the first third of the blocks and the last";
  EXPECT_EQ(clock_text(r), said);
  EXPECT_NE(advice_text(r, false).find(said), std::string::npos) << advice_text(r, false);
  // 1.8 % lower is not worth a word.
  o.state = [&]() -> DeviceState { return {2750.0 - 25 * reading++, {}}; };
  EXPECT_EQ(clock_text(tested()), "");
  EXPECT_EQ(nlohmann::json::parse(advice_json(tested()))["experiment"]["block_power_w"],
            nlohmann::json({nullptr, nullptr, nullptr}));
  o.state = nullptr;
  EXPECT_EQ(nlohmann::json::parse(advice_json(tested()))["experiment"]["block_clock_mhz"],
            nlohmann::json({nullptr, nullptr, nullptr}));
  EXPECT_EQ(clock_text(tested()), "");
}

TEST(Experiment, A33_one_reading_of_the_clock_that_is_off_is_no_change) {
  const auto said = [](const std::vector<std::optional<double>>& clocks) {
    AdviceRecord r;
    for (const auto& mhz : clocks) r.block_states.push_back({mhz, {}});
    return clock_text(r);
  };
  EXPECT_EQ(said({2900, 3000, 3000, 3000, 3000, 3000, 3000, 3000, 2850}), "") << "the first, the last";
  const std::string fell =
      "the clock went from 3.00 to 2.80 GHz between the first third of the blocks and the last";
  EXPECT_EQ(said({2800, 3000, 3000, 3000, 2900, 2800, 2800, 2800, 3000}), fell)
      << "though those two say otherwise";
  EXPECT_EQ(said({{}, 3000, 3000, 2900, {}, 2800}), fell) << "of the blocks that tell it";
  EXPECT_EQ(said({3000, 2800}), fell);
  EXPECT_EQ(said({{}, {}, 3000}), "");
  EXPECT_EQ(said({3000}), "");
  EXPECT_EQ(said({}), "");
}

TEST(Experiment, a_real_gain_inside_the_prediction_holds) {
  Bench b;
  b.changed_us = 80;
  const AdviceRecord r = b.test(record_of(0.1, 0.2, 0.3), 5'000);
  EXPECT_NEAR(r.measured.value, 0.2, 1e-12);
  EXPECT_TRUE(r.interval_known);
  EXPECT_EQ(r.decision, Decision::kHeld) << r.decision_reason;
  EXPECT_EQ(r.original_us, 100);
  EXPECT_EQ(r.changed_us, 80);
}

TEST(Experiment, a_gain_outside_the_prediction_refutes_it_and_so_does_a_wrong_sign) {
  Bench fast, slow;
  fast.changed_us = 50, slow.changed_us = 130;
  const AdviceRecord size = fast.test(record_of(0.1, 0.2, 0.3), 5'000);
  EXPECT_EQ(size.decision, Decision::kRefuted);
  EXPECT_NE(size.decision_reason.find("sign is right"), std::string::npos);
  const AdviceRecord sign = slow.test(record_of(0.01, 0.1, 0.3), 5'000);
  EXPECT_EQ(sign.decision, Decision::kRefuted);
  EXPECT_NE(sign.decision_reason.find("not the predicted one"), std::string::npos);
}

TEST(Experiment, a_predicted_loss_that_is_measured_holds) {
  Bench b;
  b.changed_us = 130;
  EXPECT_EQ(b.test(record_of(-0.4, -0.3, -0.2), 5'000).decision, Decision::kHeld);
}

TEST(Experiment, the_budget_ends_it_and_few_blocks_decide_nothing) {
  Bench b;
  b.changed_us = 80;
  // A block takes 360 us: five fit into 1,900.
  const AdviceRecord r = b.test(record_of(0.1, 0.2, 0.3), 1'900);
  EXPECT_EQ(r.block_gains.size(), 5u);
  EXPECT_FALSE(r.interval_known);
  EXPECT_EQ(r.decision, Decision::kNoDecision);
  EXPECT_NE(r.decision_reason.find("needs 6 blocks, there are 5"), std::string::npos) << r.decision_reason;
}

TEST(Experiment, A47_five_levers_need_more_blocks_than_one) {
  EXPECT_EQ(least_blocks(0.95), 6);
  EXPECT_EQ(least_blocks(0.99), 8);
  Bench one, five;
  one.changed_us = five.changed_us = 80;
  EXPECT_EQ(one.test(record_of(0.1, 0.2, 0.3), 7 * 360 + 1).decision, Decision::kHeld);
  const AdviceRecord r = five.test(record_of(0.1, 0.2, 0.3), 7 * 360 + 1, 5);
  EXPECT_EQ(r.decision, Decision::kNoDecision);
  EXPECT_NEAR(r.confidence, 0.99, 1e-12);
}

TEST(Experiment, A47_an_interval_that_includes_zero_decides_nothing) {
  AdviceRecord r = record_of(0.1, 0.2, 0.3);
  r.interval_known = true, r.measured = {-0.01, 0.15, 0.25};
  decide(&r);
  EXPECT_EQ(r.decision, Decision::kNoDecision);
}

TEST(Experiment, A47_what_lies_outside_of_the_prediction_refutes_it_though_it_includes_zero) {
  AdviceRecord r = record_of(-0.12, -0.09, -0.06);
  r.interval_known = true, r.measured = {-0.025, 0.054, 0.097};
  decide(&r);
  EXPECT_EQ(r.decision, Decision::kRefuted);
  EXPECT_NE(r.decision_reason.find("includes 0 and lies outside"), std::string::npos) << r.decision_reason;
}

TEST(Experiment, a_prediction_that_left_the_sign_open_is_neither_right_nor_wrong_by_sign) {
  AdviceRecord r = record_of(-0.3, 0.04, 0.38);
  r.interval_known = true, r.measured = {-0.25, -0.2, -0.15};
  decide(&r);
  EXPECT_EQ(r.decision, Decision::kHeld) << "the middle of an interval around 0 is no prediction";
  r.measured = {-0.8, -0.7, -0.6};
  decide(&r);
  EXPECT_EQ(r.decision, Decision::kRefuted);
  EXPECT_EQ(r.decision_reason.find("sign is"), std::string::npos) << r.decision_reason;
}

TEST(Experiment, A28_the_first_runs_are_kept_apart) {
  Bench b;
  int calls = 0;
  AdviceRecord r = record_of(0.1, 0.2, 0.3);
  ExperimentOptions o;
  o.budget_s = 1e-3, o.clock_ns = [&] { return b.clock_ns; };
  const Arm cold = [&]() -> Result<double> { return b.run(false).take() * (calls++ == 0 ? 6 : 1); };
  ASSERT_TRUE(run_experiment(
                  cold, [&] { return b.run(true); }, o, &r)
                  .ok());
  EXPECT_EQ(r.first_original_us, 600);
  EXPECT_EQ(r.original_us, 100);
}

TEST(Experiment, an_error_or_ctrl_c_ends_it) {
  AdviceRecord r = record_of(0.1, 0.2, 0.3);
  ExperimentOptions o;
  const Arm works = [] { return Result<double>(1.0); },
            fails = [] { return Result<double>(internal_error("broken")); };
  EXPECT_EQ(run_experiment(works, fails, o, &r).message(), "broken");
  o.interrupted = [] { return true; };
  EXPECT_EQ(run_experiment(works, works, o, &r).code(), Code::kCancelled);
}

}  // namespace
}  // namespace ridge
