// What the engine takes in, what it refuses, and that one request's trouble stays its own.

#include "engine/engine.h"

#include "base/stop.h"
#include "engine/generate.h"

namespace ridge {
namespace {

EngineOptions small(int64_t context, int64_t page_size, int64_t pages, int64_t sequences) {
  EngineOptions o;
  o.kv.context = context, o.kv.page_size = page_size, o.kv.pages = pages;
  o.max_sequences = sequences;
  return o;
}

void expect_refused(InferenceEngine& engine, const Request& r, Code code,
                    std::initializer_list<const char*> parts) {
  const auto id = engine.submit(r);
  ASSERT_FALSE(id.ok()) << "accepted; wanted an error with " << *parts.begin();
  EXPECT_STREQ(code_name(id.status().code()), code_name(code));
  for (const char* part : parts)
    EXPECT_NE(id.status().message().find(part), std::string::npos)
        << id.status().message() << " lacks " << part;
}

/// Asks for a stop when a call of a step has run.
struct StopAfter final : StepObserver {
  explicit StopAfter(size_t call) : wanted(call) {}
  void on_step(const StepFacts&, const StepPlan&) override { ++steps; }
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  bool wants_calls() const override { return true; }
  void on_call(const StepPlan& plan, size_t call) override {
    last = plan.calls().size() - 1;
    if (call == std::min(wanted, last)) request_stop();
  }
  size_t wanted, last = 0;
  int steps = 0;
};

TEST(Engine, a_stop_ends_a_step_between_two_calls_and_the_step_can_be_taken_again) {
  TinyModel tiny;
  const auto wanted = request(random_prompt(100, 4), 6), mate = request(random_prompt(30, 5), 9);
  EngineOptions o = small(128, 16, 0, 2);
  o.prefill_tokens = 48;
  const auto plain = generate(*engine_for(tiny, o), {wanted, mate});
  for (const size_t call : {size_t{0}, size_t{3}, size_t{11}, size_t{1000}})
    for (const int steps : {0, 2, 5}) {  // a first chunk, a mixed step, decodes
      SCOPED_TRACE(text("call ", call, " after ", steps, " steps"));
      const auto engine = engine_for(tiny, o);
      std::map<int64_t, Answer> answers;
      std::vector<int64_t> ids;
      for (const Request& r : {wanted, mate}) ids.push_back(*engine->submit(r));
      for (int i = 0; i < steps; ++i) ASSERT_TRUE(take_step(*engine, &answers));
      StopAfter stop(call);
      engine->set_observer(&stop);
      const auto stopped = engine->step();
      engine->set_observer(nullptr);
      ASSERT_FALSE(stopped.ok());
      EXPECT_EQ(stopped.status().code(), Code::kCancelled) << stopped.status().message();
      EXPECT_EQ(stop.steps, 0) << "the step counts for nothing";
      EXPECT_EQ(engine->step().status().code(), Code::kCancelled) << "until the stop is withdrawn";
      withdraw_stop();
      while (!engine->idle()) ASSERT_TRUE(take_step(*engine, &answers));
      expect_same(answers[ids[0]], plain[0], "the request");
      expect_same(answers[ids[1]], plain[1], "its mate");
      EXPECT_EQ(engine->kv().free_pages(), engine->kv().total_pages());
    }
}

TEST(Engine, a_cancelled_request_after_a_stop_gives_its_pages_back) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(128, 16, 0, 1));
  const int64_t id = *engine->submit(request(random_prompt(100, 4), 6));
  request_stop();
  EXPECT_EQ(engine->step().status().code(), Code::kCancelled);
  withdraw_stop();
  engine->cancel(id);
  EXPECT_TRUE(engine->idle());
  EXPECT_EQ(engine->kv().free_pages(), engine->kv().total_pages());
}

TEST(Engine, I38_a_prompt_that_fills_the_context_is_refused_with_both_numbers) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(64, 16, 0, 1));
  for (const int64_t length : {64, 65, 640})
    expect_refused(*engine, request(random_prompt(length, 1), 4), Code::kInvalidArgument,
                   {text(length, " tokens").c_str(), "64"});
  EXPECT_TRUE(engine->idle());
  const auto longest = generate(*engine, {request(random_prompt(63, 1), 100)});
  EXPECT_EQ(longest[0].tokens.size(), 1u);  // the context's last place
  EXPECT_EQ(longest[0].finish, Finish::kLength);
}

TEST(Engine, a_request_that_makes_no_sense_is_refused_with_its_value) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(64, 16, 0, 1));
  expect_refused(*engine, request({}, 4), Code::kInvalidArgument, {"no tokens"});
  expect_refused(*engine, request({1, 300}, 4), Code::kInvalidArgument, {"token 1 is 300", "300"});
  expect_refused(*engine, request({-1}, 4), Code::kInvalidArgument, {"token 0 is -1"});
  expect_refused(*engine, request({1}, 0), Code::kInvalidArgument, {"max_new_tokens is 0"});
  EXPECT_TRUE(engine->step()->empty());
}

TEST(Engine, options_out_of_range_are_refused_by_name) {
  TinyModel tiny;
  const auto refused = [&](const EngineOptions& o, const char* says) {
    const auto engine = InferenceEngine::create(*tiny.device, *tiny.model, o);
    ASSERT_FALSE(engine.ok()) << says;
    EXPECT_NE(engine.status().message().find(says), std::string::npos) << engine.status().message();
  };
  refused(small(1024, 16, 0, 1), "context is 1024");
  refused(small(-1, 16, 0, 1), "context is -1");
  refused(small(64, 0, 0, 1), "page_size is 0");
  refused(small(64, 5000, 0, 1), "page_size is 5000");
  refused(small(64, 16, -2, 1), "-2 pages");
  refused(small(64, 16, int64_t{1} << 31, 1), "2147483648 pages");
  refused(small(64, 16, 0, 0), "max_sequences is 0");
  refused(small(64, 16, 0, 5000), "max_sequences is 5000");
  EngineOptions o = small(64, 16, 0, 1);
  o.prefill_tokens = 0;
  refused(o, "prefill_tokens is 0");
  o = small(64, 16, 0, 1);
  o.kv.k_type = kQ8_0;
  refused(o, "KV format is q8_0");
}

TEST(Engine, an_answer_without_a_limit_of_its_own_ends_with_the_context) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(64, 16, 0, 1));
  const Answer a = generate(*engine, {request(random_prompt(60, 1), INT64_MAX)}).at(0);
  EXPECT_EQ(a.tokens.size(), 4u);
  EXPECT_EQ(a.finish, Finish::kLength);
}

TEST(Engine, an_end_token_ends_and_is_the_last_token) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(64, 16, 0, 1));
  const Answer free = generate(*engine, {request({5, 6, 7}, 8)}).at(0);
  Request r = request({5, 6, 7}, 8);
  r.end_ids = {free.tokens[2]};
  const Answer ended = generate(*engine, {r}).at(0);
  const auto first = std::find(free.tokens.begin(), free.tokens.end(), free.tokens[2]) - free.tokens.begin();
  EXPECT_EQ(ended.finish, Finish::kEnd);
  EXPECT_EQ(ended.tokens, std::vector<int32_t>(free.tokens.begin(), free.tokens.begin() + first + 1));
  EXPECT_EQ(engine->kv().free_pages(), engine->kv().total_pages());
}

TEST(Engine, pages_come_back_after_every_end_and_after_cancelling) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(128, 8, 0, 3));
  const int64_t all = engine->kv().free_pages();
  EXPECT_EQ(all, 3 * 16);
  const int64_t prefilling = *engine->submit(request(random_prompt(100, 1), 20));
  const int64_t decoding = *engine->submit(request(random_prompt(10, 2), 20));
  const int64_t waiting = *engine->submit(request(random_prompt(10, 3), 20));
  std::map<int64_t, Answer> answers;
  ASSERT_TRUE(take_step(*engine, &answers));
  ASSERT_TRUE(take_step(*engine, &answers));
  EXPECT_LT(engine->kv().free_pages(), all);
  for (const int64_t id : {decoding, prefilling, waiting}) engine->cancel(id);
  engine->cancel(12345);  // unknown: nothing
  EXPECT_TRUE(engine->idle());
  EXPECT_EQ(engine->kv().free_pages(), all);
  EXPECT_TRUE(engine->step()->empty());
}

TEST(Engine, out_of_pages_one_request_ends_with_an_error_and_the_others_go_on) {
  TinyModel tiny;
  // Two sequences of 8 + 40 tokens need 12 pages of 8; there are 8.
  const auto engine = engine_for(tiny, small(128, 8, 8, 2));
  const Request a = request(random_prompt(8, 1), 40), b = request(random_prompt(8, 2), 40);
  const Answer alone = generate(*engine_for(tiny, small(128, 8, 8, 1)), {b}).at(0);
  const auto both = generate(*engine, {a, b});
  EXPECT_EQ(int(both[0].finish == Finish::kError) + int(both[1].finish == Finish::kError), 1);
  const Answer& failed = both[both[0].finish == Finish::kError ? 0 : 1];
  EXPECT_EQ(failed.error.code(), Code::kResourceExhausted);
  EXPECT_NE(failed.error.message().find("0 of 8 are free"), std::string::npos) << failed.error.message();
  const Answer& whole = both[both[0].finish == Finish::kError ? 1 : 0];
  EXPECT_EQ(whole.finish, Finish::kLength);
  EXPECT_EQ(whole.tokens.size(), 40u);
  if (both[1].finish != Finish::kError) expect_same(both[1], alone, "the one that went on");
  EXPECT_EQ(engine->kv().free_pages(), 8);
  EXPECT_TRUE(engine->idle());
}

TEST(Engine, a_prompt_without_pages_waits_until_they_come_back) {
  TinyModel tiny;
  // The first holds 2 pages of 4 at once and all 4 in the end; the second needs 3.
  const auto engine = engine_for(tiny, small(64, 16, 4, 2));
  const Request first = request(random_prompt(30, 1), 30), second = request(random_prompt(40, 2), 5);
  const auto both = generate(*engine, {first, second});
  for (const Answer& a : both) EXPECT_EQ(a.finish, Finish::kLength) << a.error.message();
  expect_same(both[1], generate(*engine_for(tiny, small(64, 16, 4, 1)), {second}).at(0),
              "the one that waited");
}

TEST(Engine, prompts_that_hold_pages_of_each_other_all_come_to_an_end) {
  TinyModel tiny;
  EngineOptions o = small(64, 8, 8, 4);
  o.prefill_tokens = 8;
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 6; ++i) requests.push_back(request(random_prompt(50, i), 4));
  const auto engine = engine_for(tiny, o);
  const auto answers = generate(*engine, requests);
  ASSERT_EQ(answers.size(), 6u);
  for (size_t i = 0; i < answers.size(); ++i)
    expect_same(answers[i], generate(*engine_for(tiny, small(64, 8, 8, 1)), {requests[i]}).at(0),
                text("request ", i));
  EXPECT_EQ(engine->kv().free_pages(), 8);
}

TEST(Engine, a_prompt_that_no_pool_of_this_size_can_hold_is_refused_with_both_numbers) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(256, 16, 4, 1));
  expect_refused(*engine, request(random_prompt(100, 1), 4), Code::kResourceExhausted, {"7 KV pages", "4"});
}

TEST(Engine, I19_nan_logits_end_that_request_alone) {
  TinySpec spec;
  constexpr int32_t kPoison = 7;
  spec.edit = [](const std::string& name, std::vector<float>* values) {
    if (name == "token_embd.weight") (*values)[kPoison * 256 + 5] = std::nanf("");
  };
  TinyModel tiny(spec);
  const auto clean = [&](uint64_t seed, int64_t n) {
    auto p = random_prompt(n, seed);
    for (int32_t& id : p)
      if (id == kPoison) id = 8;
    return request(p, 12);
  };
  const std::vector<Request> mates = {clean(1, 20), clean(2, 3), request({3, kPoison, 4}, 12), clean(3, 40)};
  EngineOptions o = small(128, 8, 0, 4);
  o.prefill_tokens = 16;
  const auto engine = engine_for(tiny, o);
  const auto got = generate(*engine, mates);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[2].finish, Finish::kError);
  EXPECT_TRUE(got[2].tokens.empty()) << "an id was drawn from NaN";
  EXPECT_NE(got[2].error.message().find("a logit is NaN"), std::string::npos) << got[2].error.message();
  EXPECT_EQ(engine->corrupted_requests(), 1);
  for (const size_t i : {0u, 1u, 3u})
    expect_same(got[i], generate(*engine_for(tiny, small(128, 8, 0, 1)), {mates[i]}).at(0),
                text("request ", i));
  // The poisoned pages are free again; who gets them next reads nothing of them.
  const auto after = generate(*engine, {mates[0], mates[1], mates[3]});
  expect_same(after[0], got[0], "after the poison");
  expect_same(after[2], got[3], "after the poison");
  EXPECT_EQ(engine->corrupted_requests(), 1);
}

/// Counts the plans that steps ran on.
struct Plans final : StepObserver {
  std::set<const StepPlan*> seen;
  std::vector<Phase> phases;
  std::vector<StepFacts> facts;
  void on_step(const StepFacts& f, const StepPlan& plan) override {
    seen.insert(&plan), phases.push_back(f.phase), facts.push_back(f);
  }
  void on_stage(int64_t, Stage, int64_t begin, int64_t end) override { EXPECT_LE(begin, end); }
};

TEST(Engine, a_plan_is_written_once_for_a_batch_shape_and_used_again) {
  TinyModel tiny;
  EngineOptions o = small(128, 16, 0, 2);
  o.prefill_tokens = 16;
  const auto engine = engine_for(tiny, o);
  Plans plans;
  engine->set_observer(&plans);
  generate(*engine, {request(random_prompt(64, 1), 10)});
  EXPECT_EQ(plans.phases.size(), 4u + 9u);
  EXPECT_EQ(plans.seen.size(), 3u);  // a chunk, the last chunk with its logits, a decode
  const int64_t bytes = engine->plan_bytes();
  EXPECT_GT(bytes, 0);
  generate(*engine, {request(random_prompt(48, 2), 10)});
  EXPECT_EQ(plans.seen.size(), 3u);
  EXPECT_EQ(engine->plan_bytes(), bytes);
}

TEST(Engine, plans_held_are_bounded_however_many_shapes_come) {
  TinyModel tiny;
  const auto engine = engine_for(tiny, small(128, 16, 0, 1));
  for (int64_t n = 1; n <= 40; ++n) generate(*engine, {request(random_prompt(n, 1), 1)});
  const int64_t bytes = engine->plan_bytes();
  for (int64_t n = 40; n >= 1; --n) generate(*engine, {request(random_prompt(n, 1), 1)});
  EXPECT_LE(engine->plan_bytes(), bytes);  // 16 plans, of shorter prompts now
}

TEST(Engine, a_step_that_holds_chunks_and_decodes_is_a_phase_of_its_own) {
  TinyModel tiny;
  EngineOptions o = small(128, 16, 0, 2);
  o.prefill_tokens = 16;
  const auto engine = engine_for(tiny, o);
  Plans plans;
  engine->set_observer(&plans);
  generate(*engine, {request(random_prompt(8, 1), 12), request(random_prompt(40, 2), 2)}, 2);
  const std::vector<Phase> first(plans.phases.begin(), plans.phases.begin() + 3);
  EXPECT_EQ(first, (std::vector<Phase>{Phase::kPrefill, Phase::kDecode, Phase::kMixed}));
  const StepFacts& mixed = plans.facts[2];
  EXPECT_EQ(mixed.decode_tokens, 1);
  EXPECT_EQ(mixed.prefill_tokens, 16);
  EXPECT_EQ(mixed.logit_rows, 1);  // an unfinished prompt has no logits (case A1)
  int64_t before = mixed.calls_begin_ns;
  for (const CallTime& c : mixed.calls) EXPECT_GE(c.end_ns, before), before = c.end_ns;
  EXPECT_GE(mixed.calls_begin_ns, mixed.begin_ns);
  EXPECT_LE(before, mixed.end_ns);
}

}  // namespace
}  // namespace ridge
