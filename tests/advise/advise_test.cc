// From a model file to tested advice, on a tiny model: what is proven is the path, not a speed.

#include "advise/advise.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "advise/quality.h"
#include "formats/tokenizer_specs.h"
#include "lab/example_profile.h"
#include "lab/report.h"
#include "lab/trace.h"
#include "models/tiny_model.h"

namespace ridge {
namespace {

class AdviseRun : public testing::Test {
 protected:
  AdviseRun() : path_(testing::TempDir() + "ridge-advise-XXXXXX") {
    const int file = mkstemp(path_.data());
    EXPECT_GE(file, 0);
    close(file);
    const TokenizerSpec t = small_bpe();
    TinySpec spec;
    spec.vocab = static_cast<int64_t>(t.tokens.size());
    spec.extra = [&](GgufWriter* w) {
      w->add_string("tokenizer.ggml.model", t.model), w->add_string("tokenizer.ggml.pre", t.pre);
      w->add_string_array("tokenizer.ggml.tokens", t.tokens);
      w->add_string_array("tokenizer.ggml.merges", t.merges);
      w->add_i32_array("tokenizer.ggml.token_type", t.types);
      w->add_u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(t.bos));
      w->add_u32("tokenizer.ggml.eos_token_id", 256);
      w->add_bool("tokenizer.ggml.add_bos_token", true);
    };
    std::ofstream(path_, std::ios::binary) << TinyFile(spec).bytes();
    options_.device.cpu.threads = 1;
    auto opened = Session::open(path_, options_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (opened.ok()) session_ = opened.take();
    wanted_.workload.prompt_tokens = 12, wanted_.workload.output_tokens = 4, wanted_.quality_tokens = 6,
    wanted_.budget_s = 0.05;
  }
  ~AdviseRun() override { std::filesystem::remove(path_); }

  Advised run(const std::vector<std::string>& levers) {
    for (const std::string& l : levers) {
      auto lever = parse_lever(l);
      EXPECT_TRUE(lever.ok()) << lever.status().message();
      if (lever.ok()) wanted_.levers.push_back(lever.take());
    }
    auto advised = advise(*session_, options_, example_machine(), wanted_);
    EXPECT_TRUE(advised.ok()) << advised.status().message();
    return advised.ok() ? advised.take() : Advised{};
  }

  std::string path_;
  SessionOptions options_;
  AdviseOptions wanted_;
  std::unique_ptr<Session> session_;
};

TEST_F(AdviseRun, levers_asked_for_are_run_and_a_change_of_numerics_states_its_cost) {
  const Advised a = run({"kv=q8", "prefill-chunk=5", "activations=f32"});
  ASSERT_EQ(a.records.size(), 3u);
  for (const AdviceRecord& r : a.records) {
    ASSERT_NE(r.choice(), nullptr);
    EXPECT_TRUE(r.choice()->predicted) << r.choice()->reason;
    EXPECT_GE(r.block_gains.size(), 1u);
    EXPECT_NE(r.decision, Decision::kNotRun);
    EXPECT_NEAR(r.confidence, 1 - 0.05 / 3, 1e-12) << "three levers tried";
    EXPECT_EQ(r.workload.prompt_tokens, 12);
    const bool numerics = r.choice()->lever.name != "prefill-chunk";
    EXPECT_EQ(r.changes_numerics, numerics);
    EXPECT_EQ(r.quality.measured, numerics);
    if (!numerics) continue;
    EXPECT_EQ(r.quality.tokens, 6);
    EXPECT_GT(r.quality.kl_mean, 0);
    EXPECT_LT(r.quality.kl_max, 0.1);
  }
  EXPECT_EQ(a.records[0].choice()->lever.from, "f16");
  EXPECT_EQ(a.records[2].choice()->lever.from, "int8");
}

TEST_F(AdviseRun, without_a_lever_asked_for_one_is_tested_whatever_the_account_says) {
  const Advised a = run({});
  ASSERT_EQ(a.records.size(), 1u);
  const AdviceRecord& r = a.records[0];
  ASSERT_NE(r.choice(), nullptr);
  EXPECT_TRUE(r.choice()->predicted);
  EXPECT_GE(r.block_gains.size(), 1u);
  EXPECT_NE(r.decision, Decision::kNotRun);
  EXPECT_TRUE(advice_of(r) == Advice::kKeep || advice_of(r) == Advice::kChange);
}

TEST_F(AdviseRun, a_batch_runs_in_both_arms_and_is_what_the_workload_says) {
  options_.engine.max_sequences = wanted_.workload.batch = 3;
  auto opened = Session::open(path_, options_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  session_ = opened.take();
  const Advised a = run({"prefill-chunk=10"});
  ASSERT_EQ(a.records.size(), 1u);
  EXPECT_EQ(a.records[0].workload.batch, 3);
  EXPECT_GE(a.records[0].block_gains.size(), 1u);
  EXPECT_NE(a.records[0].choice()->reason.find("weights read 4 instead of 1 times"), std::string::npos)
      << "36 tokens of three prompts in tens: " << a.records[0].choice()->reason;
  int64_t decoded = 0;
  for (const ProfilePhase& phase : a.profile.phases)
    if (phase.phase == Phase::kDecode) decoded += phase.tokens;
  EXPECT_EQ(decoded, 9) << "three answers of four tokens, the first of each from prefill";
}

TEST_F(AdviseRun, the_same_formats_cost_nothing_and_every_token_is_compared) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 200; ++i) ids.push_back(i % 100);  // longer than a piece
  const EngineOptions& options = session_->engine().options();
  const auto none = quality_cost(session_->device(), session_->model(), options, options, ids);
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->tokens, 200);
  EXPECT_EQ(none->kl_max, 0);
  EXPECT_EQ(none->same_top, 1);
  EngineOptions q8 = options;
  q8.kv.k_type = q8.kv.v_type = kI8;
  const auto some = quality_cost(session_->device(), session_->model(), options, q8, ids);
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_GT(some->kl_mean, 0);
  EXPECT_EQ(quality_cost(session_->device(), session_->model(), options, q8, {}).status().code(),
            Code::kInvalidArgument);
}

TEST_F(AdviseRun, predicting_alone_runs_no_experiment) {
  wanted_.experiment = false;
  const Advised a = run({});
  ASSERT_EQ(a.records.size(), 1u);
  EXPECT_EQ(a.records[0].decision, Decision::kNotRun);
  EXPECT_TRUE(a.records[0].block_gains.empty());
  // activations, three KV formats, two threads, chunks 256, 1024 and 12, one fusion or more.
  EXPECT_GE(a.records[0].considered.size(), 9u);
  for (const LeverJudgement& j : a.records[0].considered) EXPECT_FALSE(j.reason.empty()) << j.lever.name;
}

TEST_F(AdviseRun, the_profile_of_a_run_conserves_time_into_trace_and_page) {
  wanted_.experiment = false;
  const Advised a = run({});
  double request = 0, stages = 0, steps = 0, inside = 0;
  const auto trace = nlohmann::json::parse(trace_json(a.profile));
  for (const auto& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    const std::string kind = e.at("cat");
    (kind == "request" ? request
     : kind == "stage" ? stages
     : kind == "step"  ? steps
                       : inside) += e.at("dur").get<double>();
  }
  EXPECT_GT(request, 0);
  EXPECT_NEAR(stages, request, 1e-6 * request);
  EXPECT_NEAR(inside, steps, 1e-6 * steps);
  double wall = 0;
  for (const ProfilePhase& phase : a.profile.phases) wall += phase.wall_us;
  EXPECT_NEAR(steps, wall, 1e-6 * wall);
  EXPECT_NE(report_html(a.profile, &a.records[0]).find("attention_decode"), std::string::npos);
}

TEST_F(AdviseRun, what_changes_nothing_and_what_there_is_not_are_refused_before_anything_runs) {
  // Before anything runs: no progress is reported.
  wanted_.progress = [](const char* what, double) { FAIL() << what; };
  const std::pair<Lever, const char*> nothing_changes[] = {
      {{"kv", "", "f16"},
       "lever kv=f16 is how the workload runs already; here there are activations=f32, kv=f32"},
      {{"activations", "", "int8"}, "runs already"},
      {{"threads", "", "1"}, "runs already"},
      {{"prefill-chunk", "", "512"}, "runs already"},
      {{"prefill-chunk", "", "12"}, "1 times 12 tokens run in 1 steps either way"},
      {{"fuse-add_rms_norm", "", "off"}, "runs already"}};
  for (const auto& [lever, says] : nothing_changes) {
    wanted_.levers = {lever};
    const auto refused = advise(*session_, options_, example_machine(), wanted_);
    EXPECT_EQ(refused.status().code(), Code::kInvalidArgument) << says;
    EXPECT_NE(refused.status().message().find(says), std::string::npos) << refused.status().message();
    EXPECT_NE(refused.status().message().find("fuse-add_rms_norm=on"), std::string::npos)
        << "a lever that there is: " << refused.status().message();
  }
  wanted_.progress = nullptr;
  const auto gpu_only = parse_lever("fuse-linear_add=on");
  EXPECT_NE(gpu_only.status().message().find(
                "linear_add fuses nothing on cpu; the fusions there are fuse-add_rms_norm"),
            std::string::npos)
      << gpu_only.status().message();
  for (const char* wrong :
       {"kv", "kv=", "=q8", "kv=q3", "threads=0", "threads=2x", "colour=red", "fuse-linear=on",
        "fuse-add_rms_norm=maybe", "prefill-chunk=99999999999999999999"}) {
    const auto lever = parse_lever(wrong);
    EXPECT_EQ(lever.status().code(), Code::kInvalidArgument) << wrong;
  }
}

TEST_F(AdviseRun, an_interruption_ends_it_and_leaves_the_session_usable) {
  wanted_.interrupted = [] { return true; };
  EXPECT_EQ(advise(*session_, options_, example_machine(), wanted_).status().code(), Code::kCancelled);
  wanted_.interrupted = nullptr, wanted_.experiment = false;
  EXPECT_EQ(run({}).records.size(), 1u);
}

}  // namespace
}  // namespace ridge
