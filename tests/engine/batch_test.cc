// A request's answer depends on the request alone: not on batch mates, chunks, pages, threads or the plan
// that happens to be there.

#include "engine/generate.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "sanitized.h"

namespace ridge {
namespace {

struct Setup {
  const char* architecture;
  ActivationFormat activations;
  DType kv;
};
std::ostream& operator<<(std::ostream& out, const Setup& s) {
  return out << s.architecture << "_" << activation_format_name(s.activations) << "_" << dtype_name(s.kv);
}

class Batch : public testing::TestWithParam<Setup> {
 protected:
  TinySpec spec() const {
    TinySpec s;
    s.architecture = GetParam().architecture;
    return s;
  }
  EngineOptions options(int64_t prefill_tokens, int64_t page_size, int64_t sequences = 1) const {
    EngineOptions o;
    o.kv.k_type = o.kv.v_type = GetParam().kv;
    o.kv.page_size = page_size, o.kv.context = 256;
    o.max_sequences = sequences, o.prefill_tokens = prefill_tokens;
    o.formats.activations = GetParam().activations;
    return o;
  }
  /// Prompts of several lengths, each with its answer when it is alone.
  void make_alone(TinyModel& tiny) {
    const int64_t lengths[] = {1, 5, 63, 64, 150};
    for (size_t i = 0; i < std::size(lengths); ++i) {
      requests_.push_back(request(random_prompt(lengths[i], 100 + i), 6 + static_cast<int64_t>(i)));
      alone_.push_back(generate(*engine_for(tiny, options(512, 64)), {requests_.back()}).at(0));
      ASSERT_EQ(alone_.back().finish, Finish::kLength) << alone_.back().error.message();
      ASSERT_EQ(alone_.back().tokens.size(), 6 + i);
    }
  }
  void expect_as_alone(TinyModel& tiny, const EngineOptions& o, int gap, const std::string& what) {
    const auto engine = engine_for(tiny, o);
    const auto got = generate(*engine, requests_, gap);
    ASSERT_EQ(got.size(), requests_.size()) << what;
    for (size_t i = 0; i < got.size(); ++i) expect_same(got[i], alone_[i], text(what, ", request ", i));
    EXPECT_EQ(engine->kv().free_pages(), engine->kv().total_pages()) << what;
  }

  std::vector<Request> requests_;
  std::vector<Answer> alone_;
};

TEST_P(Batch, answers_of_different_prompts_differ) {
  TinyModel tiny(spec());
  make_alone(tiny);
  EXPECT_NE(alone_[3].logits[0], alone_[4].logits[0]);
  for (const float v : alone_[4].logits[0]) ASSERT_TRUE(std::isfinite(v));
}

TEST_P(Batch, K16_chunks_of_1_7_64_and_all_give_the_same_logits) {
  TinyModel tiny(spec());
  make_alone(tiny);
  for (const int64_t chunk : {1, 7, 64, 512})
    expect_as_alone(tiny, options(chunk, 64, 5), 0, text("chunks of ", chunk));
}

/// Keys and values of the only sequence as each layer's attention last saw them: bytes, by key and head.
struct CacheBytes final : StepObserver {
  std::map<std::string, std::vector<std::byte>> of;
  void on_step(const StepFacts&, const StepPlan&) override {}
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  bool wants_calls() const override { return true; }
  void on_call(const StepPlan& plan, size_t index) override {
    const AnyCall& call = plan.calls()[index].call;
    if (std::string_view(call.op->name()) != "attention_prefill") return;
    const auto& a = call.as<AttentionPrefillArgs>();
    std::vector<std::byte>& bytes = of[call.label];
    bytes.clear();
    for (int64_t key = 0; key < a.kv_length.i64(0); ++key)
      for (int64_t h = 0; h < a.k_pages.dim(1); ++h)
        for (const Tensor* t : {&a.k_pages, &a.v_pages, &a.k_scale, &a.v_scale}) {
          if (!*t) continue;
          const int64_t page_size = a.k_pages.dim(2), page = a.page_table.i64(0, key / page_size),
                        width = dtype_block_bytes(t->dtype);
          const std::byte* row = t->as<std::byte>() + t->offset(page, h, key % page_size, 0) * width;
          bytes.insert(bytes.end(), row, row + (t->rank() == 4 ? t->dim(3) : 1) * width);
        }
  }
};

TEST_P(Batch, K16_chunks_leave_the_same_bytes_in_the_cache) {
  TinyModel tiny(spec());
  const Request r = request(random_prompt(150, 5), 1);
  const auto cache_of = [&](int64_t chunk, int64_t page) {
    CacheBytes cache;
    const auto engine = engine_for(tiny, options(chunk, page));
    engine->set_observer(&cache);
    generate(*engine, {r});
    return cache.of;
  };
  const auto whole = cache_of(512, 64);
  ASSERT_EQ(whole.size(), 2u) << "layers";
  for (const auto& [label, bytes] : whole) EXPECT_GT(bytes.size(), 150u * 2 * 32 * 2) << label;
  for (const int64_t chunk : {1, 7, 64}) EXPECT_TRUE(cache_of(chunk, 16) == whole) << "chunks of " << chunk;
}

TEST_P(Batch, K21_pages_of_1_16_and_64_and_mates_give_the_same_logits) {
  TinyModel tiny(spec());
  make_alone(tiny);
  for (const int64_t page : {1, 16, 64})
    for (const int gap : {0, 3}) expect_as_alone(tiny, options(48, page, 5), gap, text("pages of ", page));
}

TEST_P(Batch, K21_a_larger_context_does_not_change_a_bit) {
  TinyModel tiny(spec());
  make_alone(tiny);
  EngineOptions wide = options(64, 16, 3);
  wide.kv.context = 512;
  expect_as_alone(tiny, wide, 1, "context 512");
}

TEST_P(Batch, K46_2_3_and_7_threads_give_the_logits_of_1) {
  {
    TinyModel tiny(spec());
    make_alone(tiny);
  }
  for (const int threads : {2, 3, 7}) {
    if (kSanitized && threads != 3) continue;
    // Every loop is divided, however short.
    TinyModel tiny(spec(), {.threads = threads, .isa = Isa::none, .crossover_bytes = 1});
    expect_as_alone(tiny, options(48, 16, 5), 0, text(threads, " threads"));
  }
}

TEST_P(Batch, K12_every_instruction_set_gives_nearly_the_same_logits) {
  const int64_t lengths[] = {5, 70};
  for (const int64_t length : lengths) {
    const Request r = request(random_prompt(length, 9), 1);
    std::vector<float> baseline;
    for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
      if (isa > native_isa()) continue;
      TinyModel tiny(spec(), {.threads = 1, .isa = isa});
      const Answer a = generate(*engine_for(tiny, options(512, 16)), {r}).at(0);
      ASSERT_EQ(a.logits.size(), 1u) << isa_name(isa);
      if (baseline.empty()) baseline = a.logits[0];
      double norm = 0, error = 0;
      for (size_t i = 0; i < baseline.size(); ++i)
        norm += std::pow(baseline[i], 2), error += std::pow(a.logits[0][i] - baseline[i], 2);
      // A rounding that tips an 8-bit code moves a logit by a code's width.
      const double allowed =
          GetParam().activations == ActivationFormat::kF32 && GetParam().kv == kF32 ? 1e-5 : 2e-2;
      EXPECT_LE(std::sqrt(error / norm), allowed) << isa_name(isa);
    }
  }
}

TEST_P(Batch, K12_a_whole_run_on_any_instruction_set_gives_the_same_tokens) {
  const Request r = request(random_prompt(20, 11), 24);
  const bool exact = GetParam().activations == ActivationFormat::kF32 && GetParam().kv == kF32;
  Answer baseline;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa > native_isa()) continue;
    TinyModel tiny(spec(), {.threads = 1, .isa = isa});
    const Answer a = generate(*engine_for(tiny, options(512, 16)), {r}).at(0);
    ASSERT_EQ(a.tokens.size(), 24u) << a.error.message();
    if (isa == Isa::scalar) baseline = a;
    for (size_t t = 0; t < a.tokens.size(); ++t) {
      if (a.tokens[t] == baseline.tokens[t]) continue;
      // Only where a rounding that tips an 8-bit code can decide between the best two; from there on the
      // texts are different ones.
      ASSERT_FALSE(exact) << isa_name(isa) << ", token " << t;
      const std::vector<float>& logits = baseline.logits[t];
      double norm = 0;
      for (const float v : logits) norm += double(v) * v;
      const auto at = [&](int32_t id) { return double(logits[static_cast<size_t>(id)]); };
      EXPECT_LE(at(baseline.tokens[t]) - at(a.tokens[t]), 4e-2 * std::sqrt(norm / double(logits.size())))
          << isa_name(isa) << ", token " << t;
      break;
    }
  }
  // Tokens that are all alike would agree whatever the logits.
  EXPECT_GT(std::set<int32_t>(baseline.tokens.begin(), baseline.tokens.end()).size(), 3u);
}

TEST_P(Batch, fused_operators_give_the_logits_of_the_calls_they_replace) {
  TinyModel tiny(spec());
  const Request r = request(random_prompt(20, 9), 5);
  EngineOptions plain = options(512, 16), fused = plain;
  for (const AnyOperator* op : operators())
    if (!op->replaces().empty()) fused.plan.fusions.insert(op->name());
  ASSERT_FALSE(fused.plan.fusions.empty());
  expect_same(generate(*engine_for(tiny, fused), {r}).at(0), generate(*engine_for(tiny, plain), {r}).at(0),
              "fused");
}

INSTANTIATE_TEST_SUITE_P(Formats, Batch,
                         testing::Values(Setup{"llama", ActivationFormat::kF32, kF32},
                                         Setup{"llama", ActivationFormat::kInt8, kF16},
                                         Setup{"gemma3", ActivationFormat::kF32, kF32},
                                         Setup{"gemma3", ActivationFormat::kInt8, kI8},
                                         Setup{"llama", ActivationFormat::kBf16, kF16},
                                         Setup{"qwen3", ActivationFormat::kF32, kF32}),
                         testing::PrintToStringParamName());

// A chain that draws: temperature, filters, penalties.
SamplingParams drawing(uint64_t seed) {
  SamplingParams p;
  p.temperature = 1.5f, p.top_k = 50, p.top_p = 0.95f, p.seed = seed;
  p.repetition_penalty = 1.1f;
  return p;
}

TEST(Sampling, K32_a_seeded_answer_is_the_same_alone_and_as_the_last_of_eight) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 128;
  const Request mine = request(random_prompt(5, 7), 20, drawing(42));
  const Answer alone = generate(*engine_for(tiny, o), {mine}).at(0);
  ASSERT_EQ(alone.tokens.size(), 20u);
  o.max_sequences = 8;
  std::vector<Request> mates;
  for (uint64_t i = 0; i < 7; ++i)
    mates.push_back(request(random_prompt(3 + static_cast<int64_t>(i), i), 15, drawing(i)));
  mates.push_back(mine);
  const auto together = generate(*engine_for(tiny, o), mates);
  expect_same(together.back(), alone, "last of eight");
}

TEST(Sampling, K32_an_answer_that_was_put_back_draws_the_same_tokens) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 64, o.kv.page_size = 8, o.kv.pages = 8, o.prefill_tokens = 8, o.max_sequences = 4;
  // Six prompts of 7 pages each hold pages of each other: all but one give theirs back and begin anew.
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 6; ++i) requests.push_back(request(random_prompt(50, i), 6, drawing(i)));
  const auto answers = generate(*engine_for(tiny, o), requests);
  o.max_sequences = 1, o.prefill_tokens = 512;
  for (size_t i = 0; i < requests.size(); ++i)
    expect_same(answers[i], generate(*engine_for(tiny, o), {requests[i]}).at(0), text("request ", i));
}

TEST(Sampling, K32_seeds_and_positions_draw_differently) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 128;
  const auto answer = [&](uint64_t seed) {
    return generate(*engine_for(tiny, o), {request(random_prompt(5, 7), 20, drawing(seed))}).at(0).tokens;
  };
  EXPECT_EQ(answer(1), answer(1));
  EXPECT_NE(answer(1), answer(2));
  const auto one = answer(3);
  EXPECT_GT(std::set<int32_t>(one.begin(), one.end()).size(), 1u);
}

TEST(Sampling, K32_a_temperature_below_0_or_a_broken_filter_is_refused) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, {});
  const auto refused = [&](const char* what, const std::function<void(SamplingParams&)>& set) {
    SamplingParams p;
    set(p);
    const auto id = engine->submit(request({1, 2}, 1, p));
    ASSERT_FALSE(id.ok()) << what;
    EXPECT_EQ(id.status().code(), Code::kInvalidArgument);
    EXPECT_NE(id.status().message().find(what), std::string::npos) << id.status().message();
  };
  refused("temperature is -1", [](auto& p) { p.temperature = -1; });
  refused("temperature is nan", [](auto& p) { p.temperature = std::nanf(""); });
  refused("top_p is 0", [](auto& p) { p.top_p = 0; });
  refused("top_k is -1", [](auto& p) { p.top_k = -1; });
  refused("min_p is 2", [](auto& p) { p.min_p = 2; });
  refused("repetition_penalty is 0", [](auto& p) { p.repetition_penalty = 0; });
  refused("penalty is inf", [](auto& p) { p.presence_penalty = INFINITY; });
  refused("logit_bias 300", [](auto& p) { p.logit_bias = {{300, 1.0f}}; });
  EXPECT_TRUE(engine->idle());
}

}  // namespace
}  // namespace ridge
