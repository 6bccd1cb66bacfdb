// The sampler's promises, row by row.

#include "ops/sample/sample.h"

#include "base/random.h"
#include "ops/operator_call.h"
#include "ops/sample_rows.h"
#include "plan/step_plan.h"
#include "sanitized.h"

namespace ridge {

void sample_reference(const SampleArgs& a);

namespace {

class SampleOnEach : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(, SampleOnEach, testing::ValuesIn(tests::isas()),
                         [](const auto& i) { return std::string(isa_name(i.param)); });

TEST_P(SampleOnEach,
       K30_one_finite_logit_is_the_answer_at_any_temperature_and_bad_rows_leave_their_mates_alone) {
  constexpr int64_t kColumns = 3000;
  std::vector<float> logits;
  const auto add = [&](std::vector<float> row) { logits.insert(logits.end(), row.begin(), row.end()); };
  std::vector<float> row(kColumns, -kInf);
  row[2500] = -1e30f, add(row);
  add(std::vector<float>(kColumns, -kInf));
  row = normal_logits(kColumns, 1), row[2900] = kNan, add(row);
  row = normal_logits(kColumns, 2), row[7] = kInf, add(row);
  const std::vector<float> mate = normal_logits(kColumns, 3);
  add(mate);
  for (const float temperature : {0.0f, 1e-40f, 1e-3f, 1.0f, 2.0f, 3e38f})
    for (const float top_p : {1.0f, 0.5f})
      for (const int32_t top_k : {0, 40, 2000}) {
        SCOPED_TRACE(text("temperature ", temperature, " top_p ", top_p, " top_k ", top_k));
        Sampler sampler(2, GetParam());
        SampleRows all(logits, kColumns), alone(mate, kColumns);
        alone.position[0] = 4;
        for (SampleRows* rows : {&all, &alone}) {
          rows->temperature.assign(rows->temperature.size(), temperature);
          rows->top_p.assign(rows->top_p.size(), top_p), rows->top_k.assign(rows->top_k.size(), top_k);
          ASSERT_TRUE(sampler.run(*rows).ok());
        }
        EXPECT_EQ(all.ids[0], 2500);
        EXPECT_EQ(all.logprob[0], 0);
        EXPECT_EQ(all.ids[1], -1);
        EXPECT_EQ(all.status[1], kSampleNoCandidate);
        EXPECT_EQ(all.ids[2], -1);
        EXPECT_EQ(all.status[2], kSampleNan);
        EXPECT_TRUE(std::isnan(all.logprob[2]));
        EXPECT_EQ(all.ids[3], 7);
        EXPECT_EQ(all.logprob[3], 0);
        EXPECT_EQ(all.status[3], kSampleOk);
        EXPECT_EQ(all.ids[4], alone.ids[0]);
        EXPECT_EQ(all.logprob[4], alone.logprob[0]);
      }
  EXPECT_STREQ(sample_status_name(kSampleNan), "a logit is NaN");
}

TEST_P(SampleOnEach, K29_pad_lanes_are_never_drawn) {
  expect_no_pad_lane_drawn(GetParam(), kSanitized ? 1000 : 8000, kSanitized ? 500 : 2000);
}

TEST_P(SampleOnEach, K32_a_request_draws_the_same_token_alone_in_a_batch_and_on_replays) {
  constexpr int64_t kColumns = 5000;
  const std::vector<float> mine = normal_logits(kColumns, 42);
  Sampler one(1, GetParam()), three(3, GetParam());
  SampleRows alone(mine, kColumns);
  alone.seed[0] = 42, alone.position[0] = 5;
  ASSERT_TRUE(one.run(alone).ok());
  std::vector<float> batch = normal_logits(64 * kColumns, 6);
  std::copy(mine.begin(), mine.end(), batch.begin() + 62 * kColumns);
  for (Sampler* sampler : {&one, &three}) {
    SampleRows rows(batch, kColumns);
    rows.seed[62] = 42, rows.position[62] = 5, rows.top_k[61] = 3, rows.temperature[63] = 0;
    ASSERT_TRUE(sampler->run(rows).ok());
    EXPECT_EQ(rows.ids[62], alone.ids[0]);
    EXPECT_EQ(rows.logprob[62], alone.logprob[0]);
  }
  StepPlan plan(one.device());
  SampleArgs a;
  a.ids = plan.output("ids", kI32, {1}), a.status = plan.output("status", kI32, {1});
  a.logprob = plan.output("logprob", kF32, {1}), a.logits = plan.input("logits", kF32, {1, kColumns});
  a.temperature = plan.input("temperature", kF32, {1}), a.top_k = plan.input("top_k", kI32, {1});
  a.top_p = plan.input("top_p", kF32, {1}), a.min_p = plan.input("min_p", kF32, {1});
  a.seed = plan.input("seed", kI64, {1}), a.position = plan.input("position", kI64, {1});
  plan.call("sampling", a);
  ASSERT_TRUE(plan.finish({}).ok()) << "zeroed parameters are a greedy row";
  std::copy(mine.begin(), mine.end(), plan.find("logits").as<float>());
  for (int replay = 0; replay < 4; ++replay) {
    *plan.find("temperature").as<float>() = replay == 3 ? -1.0f : 1.0f, *plan.find("top_p").as<float>() = 1;
    *plan.find("seed").as<int64_t>() = 42, *plan.find("position").as<int64_t>() = 5;
    ASSERT_TRUE(plan.run(one.stream()).ok());
    EXPECT_EQ(*plan.find("ids").as<int32_t>(), replay == 3 ? -1 : alone.ids[0]);
    EXPECT_EQ(*plan.find("status").as<int32_t>(), replay == 3 ? kSampleBadParameter : kSampleOk);
  }
}

TEST_P(SampleOnEach, K32_positions_and_seeds_give_different_draws) {
  Sampler sampler(1, GetParam());
  SampleRows rows(std::vector<float>(32768), 32768, 8);
  ASSERT_TRUE(sampler.run(rows).ok());
  EXPECT_NE(std::count(rows.ids.begin(), rows.ids.end(), rows.ids[0]), 8);
  rows.position.assign(8, 3), rows.seed = {1, 2, 3, 4, -1, -2, INT64_MAX, INT64_MIN};
  ASSERT_TRUE(sampler.run(rows).ok());
  EXPECT_NE(std::count(rows.ids.begin(), rows.ids.end(), rows.ids[0]), 8);
}

TEST_P(SampleOnEach, K32_temperature_0_draws_nothing_and_takes_the_lowest_id_of_equal_ones) {
  std::vector<float> logits = normal_logits(5000, 8);
  logits[4321] = logits[2222] = logits[4999] = 9;
  SampleRows rows(logits, 5000, 64);
  rows.temperature.assign(64, 0);
  for (size_t r = 0; r < 64; ++r) rows.seed[r] = static_cast<int64_t>(r) * 77, rows.min_p[r] = 1;
  Sampler sampler(1, GetParam());
  ASSERT_TRUE(sampler.run(rows).ok());
  for (const int32_t id : rows.ids) EXPECT_EQ(id, 2222);
  SampleRows zeros({0.0f, -0.0f, 0.0f}, 3);
  zeros.temperature[0] = 0;
  ASSERT_TRUE(sampler.run(zeros).ok());
  EXPECT_EQ(zeros.ids[0], 0);
}

TEST(Sample, K32_parameters_out_of_range_decline_naming_row_and_value) {
  const auto refusal = [](const std::function<void(SampleRows&)>& spoil) {
    SampleRows rows(std::vector<float>(12), 4);
    spoil(rows);
    Sampler sampler;
    const Status status = sampler.run(rows);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(rows.ids[0], -7) << "outputs are untouched";
    return status.message();
  };
  const auto has = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(refusal([](SampleRows& r) { r.temperature[1] = -1; }), "temperature of row 1 is -1");
  has(refusal([](SampleRows& r) { r.temperature[2] = kNan; }), "temperature of row 2 is ");
  has(refusal([](SampleRows& r) { r.temperature[2] = kInf; }), "temperature of row 2 is inf");
  has(refusal([](SampleRows& r) { r.top_k[0] = -3; }), "top_k of row 0 is -3");
  has(refusal([](SampleRows& r) { r.top_p[1] = 1.5f; }), "top_p of row 1 is 1.5");
  has(refusal([](SampleRows& r) { r.min_p[1] = -0.5f; }), "min_p of row 1 is -0.5");
  has(refusal([](SampleRows& r) { r.vocab = 5; }), "vocab is 5");
  has(refusal([](SampleRows& r) { r.penalties.assign(9, 1); }), "penalties without history");
  has(refusal([](SampleRows& r) { r.bias_ids.assign(3, 1); }), "bias_ids without bias_values");
  has(refusal([](SampleRows& r) { r.history = {0, 4, -1}; }), "history of row 1 holds 4");
  has(refusal([](SampleRows& r) {
        r.history = {0, 1, -1}, r.penalties = {1, 0, 0, 1, 0, 0, -2, 0, 0};
      }),
      "repetition penalty of row 2 is -2");
}

TEST(Sample, penalties_are_those_of_ctrl_and_of_openai_and_biases_follow) {
  Sampler sampler;
  const auto greedy = [&](std::vector<float> logits, std::vector<int32_t> history,
                          std::vector<float> penalties, std::vector<int32_t> bias_ids = {},
                          std::vector<float> bias_values = {}) {
    SampleRows rows(logits, static_cast<int64_t>(logits.size()));
    rows.temperature[0] = 0, rows.history = history, rows.penalties = penalties;
    rows.bias_ids = bias_ids, rows.bias_values = bias_values;
    EXPECT_TRUE(sampler.run(rows).ok());
    return rows.ids[0];
  };
  // Repetition 2 halves 3 (once, however often it occurred) and doubles -1.
  EXPECT_EQ(greedy({3, 1.6f}, {0, 0, 0}, {2, 0, 0}), 1);
  EXPECT_EQ(greedy({3, 1.4f}, {0, 0, 0}, {2, 0, 0}), 0);
  EXPECT_EQ(greedy({-1, -1.9f}, {0, -1, 1}, {2, 0, 0}), 1);
  EXPECT_EQ(greedy({-1, -2.1f}, {0, -1, 1}, {2, 0, 0}), 0);
  // Presence counts once, frequency each time.
  EXPECT_EQ(greedy({3, 2.6f}, {0, 0}, {1, 0.5f, 0}), 1);
  EXPECT_EQ(greedy({3, 2.4f}, {0, 0}, {1, 0.5f, 0}), 0);
  EXPECT_EQ(greedy({3, 2.1f}, {0, 0}, {1, 0, 0.5f}), 1);
  EXPECT_EQ(greedy({3, 1.9f}, {0, 0}, {1, 0, 0.5f}), 0);
  // A bias comes after the penalties: 4 / 2 + 1.
  EXPECT_EQ(greedy({4, 2.9f}, {0}, {2, 0, 0}, {0}, {1}), 0);
  EXPECT_EQ(greedy({4, 3.1f}, {0}, {2, 0, 0}, {0}, {1}), 1);
  EXPECT_EQ(greedy({4, 1}, {0}, {1, 0, 0}, {0}, {-kInf}), 1);
  EXPECT_EQ(greedy({4, 1}, {0}, {1, 0, 0}, {1}, {kInf}), 1);
}

TEST(Sample, logprob_is_of_the_models_own_distribution) {
  Sampler sampler;
  SampleRows rows(logs({.5, .3, .2}), 3);
  rows.temperature[0] = 5, rows.top_k[0] = 1, rows.bias_ids = {2}, rows.bias_values = {100};
  ASSERT_TRUE(sampler.run(rows).ok());
  EXPECT_EQ(rows.ids[0], 2);
  EXPECT_NEAR(rows.logprob[0], std::log(.2), 1e-6);
}

TEST(Sample, a_long_row_gives_the_same_bits_on_any_number_of_threads) {
  const std::vector<float> logits = normal_logits(262144, 5);
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  for (const int threads : {1, 2, 3, 5}) {
    Sampler sampler(threads);
    for (const float top_p : {1.0f, 0.9f}) {
      SampleRows rows(logits, 262144);
      rows.temperature[0] = 0.9f, rows.top_p[0] = top_p;
      ASSERT_TRUE(sampler.run(rows).ok());
      ids.push_back(rows.ids[0]), logprobs.push_back(rows.logprob[0]);
    }
  }
  for (size_t i = 2; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], ids[i % 2]);
    EXPECT_EQ(logprobs[i], logprobs[i % 2]);
  }
}

/// The kernel's ids against those of the reference, which sorts.
void expect_as_sorted(SampleRows rows) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa > native_isa()) continue;
    Sampler sampler(2, isa);
    SampleRows got = rows, want = rows;
    ASSERT_TRUE(sampler.run(got).ok());
    sample_reference(want.args());
    EXPECT_EQ(got.ids, want.ids) << isa_name(isa);
    EXPECT_EQ(got.status, want.status) << isa_name(isa);
  }
}

TEST(Sample, filters_that_keep_thousands_agree_with_a_sort) {
  constexpr int64_t kColumns = 60000;
  std::vector<float> ties = normal_logits(kColumns, 11, 2), huge = normal_logits(kColumns, 12),
                     few(kColumns, -kInf);
  for (float& v : ties) v = std::round(v);
  for (float& v : huge) v = std::pow(std::fabs(v), 40.0f) * (v < 0 ? -1 : 1);
  for (int64_t i = 0; i < 30; ++i) few[static_cast<size_t>(i * 1999)] = static_cast<float>(i % 7);
  for (const auto& logits :
       {normal_logits(kColumns, 10), ties, huge, few, std::vector<float>(kColumns, 0.5f)}) {
    if (kSanitized && logits != ties && logits != few) continue;
    SampleRows rows(logits, kColumns, 12);
    rows.top_k = {20000, 20000, 59999, 0, 0, 0, 300, 5000, 0, 100, 7000, 40};
    rows.top_p = {1, 0.8f, 0.99f, 0.9f, 0.99f, 0.5f, 1, 0.97f, 0.999f, 0.5f, 1, 1};
    rows.min_p = {0, 0, 0.01f, 0, 0.02f, 0, 0, 0, 0.1f, 0, 0.3f, 0};
    rows.temperature = {1, 2, 0.7f, 1, 1.5f, 0.8f, 1, 1, 3, 1, 1, 1};
    expect_as_sorted(rows);
  }
}

}  // namespace
}  // namespace ridge
