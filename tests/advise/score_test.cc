#include "advise/score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "advise/quality.h"
#include "base/files.h"
#include "lab/example_advice.h"
#include "lab/example_profile.h"

namespace ridge {
namespace {

class ScoreFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              text("ridge_score_", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    path_ = folder_ / "deep" / "advice.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(ScoreFile, counts_what_was_appended_and_carries_workload_and_provenance) {
  AdviceRecord r = example_advice(example_profile());
  ASSERT_TRUE(append_score(path_, r).ok());
  r.decision = Decision::kRefuted, r.measured.value = -0.1;
  ASSERT_TRUE(append_score(path_, r).ok());
  r.decision = Decision::kNoDecision;
  ASSERT_TRUE(append_score(path_, r).ok());
  const auto score = read_score(path_);
  ASSERT_TRUE(score.ok());
  EXPECT_EQ(score->held, 1);
  EXPECT_EQ(score->refuted, 1);
  EXPECT_EQ(score->undecided, 1);
  EXPECT_EQ(score->sign_right, 1);
  EXPECT_EQ(score->sign_open, 0);
  EXPECT_EQ(score->unreadable, 0);
  std::ifstream in(path_);
  std::string line;
  for (int lines = 0; std::getline(in, line); ++lines) {
    const auto j = nlohmann::json::parse(line);
    EXPECT_EQ(j.at("workload").at("prompt_tokens"), 128);
    EXPECT_EQ(j.at("provenance").at("runs"), 32);
    EXPECT_EQ(j.at("chosen").at("predicted_gain").at("low"), 0.551);
    EXPECT_EQ(j.at("quality").at("tokens"), 47);
  }
}

TEST_F(ScoreFile, a_sign_that_was_not_measured_is_open_and_a_disturbed_machine_is_kept) {
  AdviceRecord r = example_advice(example_profile());
  r.decision = Decision::kRefuted, r.measured = {-0.02, 0.01, 0.04};
  r.machine_date = "2026-11-30", r.machine_disturbed = "a thread waited";
  ASSERT_TRUE(append_score(path_, r).ok());
  const auto score = read_score(path_);
  ASSERT_TRUE(score.ok());
  EXPECT_EQ(score->refuted, 1);
  EXPECT_EQ(score->sign_open, 1);
  const auto j = nlohmann::json::parse(advice_json(r));
  EXPECT_EQ(j.at("machine").at("disturbed"), "a thread waited");
  EXPECT_EQ(j.at("machine").at("measured"), "2026-11-30");
}

TEST(AdviceText, a_lever_without_a_price_is_open_and_a_sure_trifle_a_control) {
  LeverJudgement unpriced;
  EXPECT_EQ(purpose_of(unpriced), Purpose::kOpen);
  LeverJudgement trifle;
  trifle.predicted = trifle.declined = true, trifle.gain = {0.001, 0.004, 0.008};
  EXPECT_EQ(purpose_of(trifle), Purpose::kControl);
  EXPECT_NE(std::string(purpose_text(trifle)).find("nothing worth a change"), std::string::npos);
}

TEST_F(ScoreFile, a_torn_line_costs_only_itself) {
  std::filesystem::create_directories(folder_ / "deep");
  std::ofstream(path_) << "{\"decision\":\"held\"}\n[1]\n{\"chosen\":{\"lev";
  ASSERT_TRUE(append_score(path_, example_advice(example_profile())).ok());
  const auto score = read_score(path_);
  ASSERT_TRUE(score.ok());
  EXPECT_EQ(score->held, 1);
  EXPECT_EQ(score->unreadable, 3);
}

TEST_F(ScoreFile, what_keeps_no_advice_is_refused_and_a_torn_line_beside_advice_is_not) {
  std::filesystem::create_directories(folder_ / "deep");
  std::ofstream(path_) << "a letter\n";
  EXPECT_EQ(prepare_score(path_).code(), Code::kInvalidArgument);
  std::ofstream(path_, std::ios::trunc);
  EXPECT_TRUE(prepare_score(path_).ok()) << "it is empty";
  ASSERT_TRUE(append_score(path_, example_advice(example_profile())).ok());
  std::ofstream(path_, std::ios::app) << "{\"chosen\":{\"lev";
  EXPECT_TRUE(prepare_score(path_).ok());
}

TEST_F(ScoreFile, an_absent_file_is_an_empty_score) {
  const auto score = read_score(path_);
  ASSERT_TRUE(score.ok());
  EXPECT_EQ(score->held + score->refuted + score->undecided + score->unreadable, 0);
}

TEST_F(ScoreFile, a_path_that_cannot_be_written_is_named) {
  const Status status = append_score("/proc/no/advice.jsonl", AdviceRecord{});
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("/proc/no/advice.jsonl"), std::string::npos);
}

TEST(AdviceText, says_prediction_measurement_verdict_and_declines) {
  const std::string said = advice_text(example_advice(example_profile()), false);
  for (const char* part :
       {"activations f32 -> int8", "+63.8 % less time [+55.1, +72.5]", "+62.0 % [+60.0, +66.0]", "held",
        "KL to the original 1.20e-03", "kv f16 -> q8: declined, its term does not bind"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST(AdviceText, an_untested_lever_is_said_to_be_one) {
  AdviceRecord r = example_advice(example_profile());
  r.block_gains.clear(), r.decision = Decision::kNotRun;
  EXPECT_EQ(advice_of(r), Advice::kUntested);
  EXPECT_EQ(advice_text(r, false).rfind("advice: activations f32 -> int8, not tested\n", 0), 0u);
  r.chosen = -1;
  EXPECT_EQ(advice_of(r), Advice::kNone);
}

TEST(AdviceText, only_a_measured_gain_that_is_worthwhile_changes_a_setting) {
  AdviceRecord r = example_advice(example_profile());
  EXPECT_EQ(advice_text(r, false).rfind("advice: set --activations int8\n", 0), 0u);
  for (const Interval measured : {Interval{-0.01, 0.2, 0.3}, {0.001, 0.005, 0.009}, {-0.3, -0.2, -0.1}}) {
    r.measured = measured;
    EXPECT_EQ(advice_sentence(r), "keep activations f32") << measured.value;
  }
  r.measured = {0.1, 0.2, 0.3}, r.interval_known = false;
  EXPECT_EQ(advice_of(r), Advice::kKeep) << "too few blocks show nothing";
}

TEST(AdviceText, levers_name_the_option_that_sets_them) {
  EXPECT_EQ(option_of({"threads", "2", "1"}), "-t 1");
  EXPECT_EQ(option_of({"prefill-chunk", "512", "64"}), "--prefill-tokens 64");
  EXPECT_EQ(option_of({"fuse-add_rms_norm", "on", "off"}), "--no-fuse add_rms_norm");
  EXPECT_EQ(option_of({"kv", "f16", "q8"}), "--kv q8");
}

TEST(AdviceText, a_busy_machine_is_said) {
  AdviceRecord r = example_advice(example_profile());
  EXPECT_EQ(advice_text(r, false).find("busy"), std::string::npos);
  r.pressure = 0.43;
  EXPECT_NE(advice_text(r, false).find("waited for a core in 43 %"), std::string::npos);
}

TEST(Quality, divergence_by_hand) {
  // p = (1/2, 1/2), q = (1/4, 3/4): ln 2 / 2 + ln(2/3) / 2. Logits are free up to a constant.
  const std::vector<float> p = {3, 3},
                           q = {static_cast<float>(std::log(0.25)), static_cast<float>(std::log(0.75))};
  EXPECT_NEAR(kl_divergence(p, q), 0.5 * std::log(2) + 0.5 * std::log(2.0 / 3), 1e-7);
  EXPECT_EQ(kl_divergence(p, p), 0);
}

TEST(Quality, tokens_that_are_ruled_out) {
  const float no = -std::numeric_limits<float>::infinity();
  const std::vector<float> p = {0, no}, q = {0, 0}, r = {no, 0};
  EXPECT_NEAR(kl_divergence(p, q), std::log(2), 1e-12);
  EXPECT_TRUE(std::isinf(kl_divergence(q, p)));
  EXPECT_TRUE(std::isinf(kl_divergence(p, r)));
}

}  // namespace
}  // namespace ridge
