// A second backend that computes nothing: its device has memory, its kernels write down that they were
// called. What passes here proves that weights, plan, workspace, dispatch and engine name no backend of their
// own.

#include "engine/memory_report.h"
#include "engine/null_device.h"

namespace ridge {
namespace {

class NullBackend : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    give_kernels<EmbeddingArgs, RmsNormArgs, LinearArgs, QuantizeRowsArgs, RopeArgs, KvWriteArgs,
                 AttentionPrefillArgs, AttentionDecodeArgs, SiluMulArgs, GeluMulArgs, AddArgs, GatherRowsArgs,
                 SampleArgs, FeedTokensArgs>("null");
    give_kernels<EmbeddingArgs, RmsNormArgs, FeedTokensArgs>("poor");
  }
  void SetUp() override {
    NullStream::called.clear(), NullStream::ranges.clear(),
        NullStream::records = NullStream::stamps_on = false;
    NullStream::synchronized = NullStream::waits = NullStream::copies = NullStream::graphs =
        NullStream::launched = 0;
  }
};

TEST_F(NullBackend, weights_reach_the_device_as_the_file_has_them) {
  const TinyFile tiny({});
  NullDevice device("null");
  const auto model = load_model(device, tiny.file());
  ASSERT_TRUE(model.ok()) << model.status().message();
  int matrices = 0;
  for (const LoadedTensor& t : (*model)->weights().loaded()) {
    EXPECT_EQ(t.tensor.layout, nullptr) << t.name << " was packed for a CPU";
    const auto info = tiny.file().tensor(t.name);
    ASSERT_TRUE(info.ok());
    if (t.tensor.dtype != *info->type->dtype) continue;
    std::vector<std::byte> want(static_cast<size_t>(info->bytes));
    ASSERT_TRUE(tiny.file().read(*info, want.data()).ok());
    EXPECT_EQ(std::memcmp(FarMemory::behind(t.tensor.data), want.data(), want.size()), 0) << t.name;
    matrices += t.tensor.rank() == 2;
  }
  EXPECT_EQ(matrices, 2 + 2 * 7);
  EXPECT_GE(device.uploaded, (*model)->weights().bytes());
}

/// The answer that the chain of next_token() gives.
std::vector<int32_t> chain(const std::vector<int32_t>& prompt, int64_t tokens) {
  std::vector<int32_t> out;
  int32_t id = prompt.back();
  for (int64_t i = 0; i < tokens; ++i)
    out.push_back(id = next_token(id, static_cast<int64_t>(prompt.size()) - 1 + i));
  return out;
}

struct NullEngine {
  explicit NullEngine(const TinySpec& spec, bool look_ahead = true, int64_t sequences = 2)
      : tiny(spec), device("null"), model(load_model(device, tiny.file()).take()) {
    EngineOptions o;
    o.kv.context = 64, o.max_sequences = sequences, o.prefill_tokens = 8, o.look_ahead = look_ahead;
    auto made = InferenceEngine::create(device, *model, o);
    EXPECT_TRUE(made.ok()) << made.status().message();
    engine = made.take();
  }
  /// Every request's tokens, `gap` steps between submissions.
  std::map<int64_t, std::vector<int32_t>> run(const std::vector<Request>& requests, int gap = 0) {
    std::map<int64_t, std::vector<int32_t>> tokens;
    const auto take = [&] {
      const auto events = engine->step();
      ASSERT_TRUE(events.ok()) << events.status().message();
      for (const TokenEvent& e : *events) {
        EXPECT_TRUE(e.error.ok()) << e.error.message();
        EXPECT_EQ(e.logprob, static_cast<float>(-e.token));
        tokens[e.request].push_back(e.token);
      }
    };
    for (const Request& r : requests) {
      EXPECT_TRUE(engine->submit(r).ok());
      for (int i = 0; i < gap; ++i) take();
    }
    for (int i = 0; !engine->idle() && i < 1000 && !testing::Test::HasFatalFailure(); ++i) take();
    return tokens;
  }
  TinyFile tiny;
  NullDevice device;
  std::unique_ptr<Model> model;
  std::unique_ptr<InferenceEngine> engine;
};

TEST_F(NullBackend, an_engine_runs_a_batch_through_memory_that_the_host_cannot_touch) {
  for (const char* architecture : {"llama", "gemma3"}) {
    NullStream::called.clear(), NullStream::synchronized = 0;
    TinySpec spec;
    spec.architecture = architecture;
    NullEngine null(spec);
    const auto a = random_prompt(5, 1), b = random_prompt(20, 2);
    const auto answers = null.run({request(a, 4), request(b, 3)});
    EXPECT_EQ(answers.at(1), chain(a, 4));
    EXPECT_EQ(answers.at(2), chain(b, 3));
    const std::set<std::string> kinds(NullStream::called.begin(), NullStream::called.end());
    for (const char* op : {"embedding", "rms_norm", "linear", "quantize_rows", "rope", "kv_write",
                           "attention_prefill", "attention_decode", "add", "gather_rows", "sample"})
      EXPECT_EQ(kinds.count(op), 1u) << op << " did not run for " << architecture;
    EXPECT_EQ(kinds.count(std::string(architecture) == "llama" ? "silu_mul" : "gelu_mul"), 1u);
    EXPECT_GE(null.engine->plan_bytes(), kWorkspace);
    EXPECT_EQ(NullStream::synchronized, 0) << "a step waits for its tokens, not for the device";
  }
}

TEST_F(NullBackend, a_step_copies_its_inputs_once_waits_once_and_allocates_nothing) {
  for (const bool records : {false, true}) {
    NullStream::records = records;
    NullEngine null({}, false);
    ASSERT_TRUE(null.engine->submit(request({1, 2, 3}, 20)).ok());
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(null.engine->step().ok());
    const int64_t allocations = null.device.allocations;
    NullStream::copies = NullStream::waits = NullStream::launched = NullStream::synchronized = 0;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(null.engine->step().ok());
    EXPECT_EQ(null.device.allocations, allocations);
    EXPECT_EQ(NullStream::copies, 5 * 3) << "inputs; results; ids";
    EXPECT_EQ(NullStream::waits, 5);
    EXPECT_EQ(NullStream::launched, records ? 5 : 0);
    EXPECT_EQ(NullStream::synchronized, 0);
  }
}

TEST_F(NullBackend, the_next_step_starts_from_the_token_on_the_device) {
  NullStream::records = true;
  NullEngine null({});
  ASSERT_TRUE(null.engine->submit(request({1, 2, 3}, 20)).ok());
  ASSERT_TRUE(null.engine->step().ok());  // the prompt
  ASSERT_TRUE(null.engine->step().ok());
  NullStream::called.clear();
  // The step that is waited for runs; the one after it has been queued before its token was seen.
  const auto events = null.engine->step();
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->at(0).token, chain({1, 2, 3}, 3).back());
  EXPECT_EQ(std::count(NullStream::called.begin(), NullStream::called.end(), "sample"), 1);
}

TEST_F(NullBackend, sequences_grow_join_and_leave_under_one_graph_a_bucket) {
  for (const bool look_ahead : {false, true}) {
    SCOPED_TRACE(look_ahead ? "looking ahead" : "seen first");
    NullStream::records = true, NullStream::graphs = 0;
    NullEngine null({}, look_ahead, 8);
    std::vector<Request> requests;
    std::vector<std::vector<int32_t>> prompts;
    for (int i = 0; i < 12; ++i) {
      prompts.push_back(random_prompt(1 + i % 5, static_cast<uint64_t>(i)));
      requests.push_back(request(prompts.back(), 4 + i * 3));
    }
    // One that an end token stops while the step after it is already queued.
    requests[3].end_ids = {chain(prompts[3], 6).back()};
    auto answers = null.run(requests, 2);
    ASSERT_EQ(answers.size(), requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      auto want = chain(prompts[i], requests[i].max_new_tokens);
      if (i == 3)
        want.resize(
            static_cast<size_t>(std::find(want.begin(), want.end(), requests[3].end_ids[0]) - want.begin()) +
            1);
      EXPECT_EQ(answers[static_cast<int64_t>(i) + 1], want) << "request " << i;
    }
    EXPECT_LE(NullStream::graphs, 6) << "batches of 1 to 8 come as 1, 2, 3, 4, 6 and 8";
    EXPECT_GT(NullStream::graphs, 1);
    EXPECT_EQ(null.engine->kv().free_pages(), null.engine->kv().total_pages());
  }
}

TEST_F(NullBackend, times_of_calls_are_the_devices_own_and_sum_to_the_step) {
  struct Times final : StepObserver {
    void on_step(const StepFacts& facts, const StepPlan& plan) override {
      ++steps;
      int64_t before = facts.calls_begin_ns;
      for (size_t c = 0; c < plan.calls().size(); ++c) {
        EXPECT_EQ(facts.calls[c].end_ns - before, 100) << plan.calls()[c].call.label;
        before = facts.calls[c].end_ns;
      }
      EXPECT_EQ(before, facts.end_ns);
    }
    void on_stage(int64_t, Stage, int64_t, int64_t) override {}
    int steps = 0;
  };
  NullStream::stamps_on = true;
  for (const bool records : {false, true}) {
    NullStream::records = records;
    NullEngine null({});
    Times times;
    null.engine->set_observer(&times);
    EXPECT_EQ(null.run({request({1, 2, 3}, 6)}).at(1), chain({1, 2, 3}, 6));
    EXPECT_EQ(times.steps, 6);
  }
}

TEST_F(NullBackend, launches_are_asked_for_in_the_first_run_of_a_plan_alone) {
  struct Launches final : StepObserver {
    void on_step(const StepFacts&, const StepPlan& plan) override {
      ++steps;
      for (const PlannedCall& c : plan.calls()) {
        ASSERT_EQ(c.launches.size(), 1u) << c.call.label << " after step " << steps;
        EXPECT_EQ(c.launches[0].registers, 7);
      }
    }
    void on_stage(int64_t, Stage, int64_t, int64_t) override {}
    int steps = 0;
  };
  for (const bool stamps : {false, true}) {
    NullStream::stamps_on = stamps, NullStream::records = true;
    NullEngine null({});
    Launches launches;
    null.engine->set_observer(&launches);
    EXPECT_EQ(null.run({request({1, 2, 3}, 6)}).at(1), chain({1, 2, 3}, 6));
    EXPECT_EQ(launches.steps, 6);
  }
}

TEST_F(NullBackend, a_cancelled_request_leaves_the_step_in_flight_alone) {
  NullStream::records = true;
  NullEngine null({});
  const auto first = null.engine->submit(request({1, 2, 3}, 20)),
             second = null.engine->submit(request({4, 5}, 9));
  ASSERT_TRUE(first.ok() && second.ok());
  std::vector<int32_t> got;
  for (int i = 0; !null.engine->idle() && i < 100; ++i) {
    if (i == 4) null.engine->cancel(*first);
    const auto events = null.engine->step();
    ASSERT_TRUE(events.ok());
    for (const TokenEvent& e : *events) {
      EXPECT_FALSE(i >= 4 && e.request == *first);
      if (e.request == *second) got.push_back(e.token);
    }
  }
  EXPECT_EQ(got, chain({4, 5}, 9));
}

TEST_F(NullBackend, ranges_carry_the_names_of_the_trace) {
  struct Phases final : StepObserver {
    void on_step(const StepFacts& facts, const StepPlan& plan) override {
      want.emplace_back(0, phase_name(facts.phase));
      for (const PlannedCall& c : plan.calls()) want.emplace_back(1, c.call.op->name());
    }
    void on_stage(int64_t, Stage, int64_t, int64_t) override {}
    std::vector<std::pair<int, std::string>> want;
  } phases;
  NullEngine null({});
  null.engine->set_observer(&phases);
  null.run({request(random_prompt(20, 1), 6), request(random_prompt(9, 2), 4)}, 4);
  EXPECT_EQ(NullStream::ranges, phases.want);
  std::set<std::string> names;
  for (const auto& [depth, name] : NullStream::ranges)
    if (depth == 0) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"decode", "mixed", "prefill"}));
}

TEST_F(NullBackend, what_the_checks_of_a_device_found_ends_the_step_with_its_words) {
  NullEngine null({});
  ASSERT_TRUE(null.engine->submit(request({1, 2, 3}, 4)).ok());
  NullStream::fault = invalid_argument("layer 1 attention: page_table[0, 0] is 99");
  const auto events = null.engine->step();
  ASSERT_FALSE(events.ok());
  EXPECT_EQ(events.status().message(), "layer 1 attention: page_table[0, 0] is 99");
  null.engine->reset();
  ASSERT_TRUE(null.engine->submit(request({1, 2, 3}, 4)).ok());
  EXPECT_TRUE(null.engine->step().ok()) << "a fault is told once";
}

TEST_F(NullBackend, the_memory_report_is_what_the_device_has_in_use_to_the_byte) {
  NullStream::records = true;
  NullEngine null({});
  null.run({request(random_prompt(20, 1), 6), request(random_prompt(9, 2), 4)}, 4);
  const auto report = memory_report(*null.model, *null.engine, null.device);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->device, report->held) << memory_text(*report);
  std::map<std::string, int64_t> held;
  for (const auto* items : {&report->items, &report->apart})
    for (const MemoryItem& i : *items) held[i.what] = i.held;
  EXPECT_EQ(held.at("KV pages"), null.engine->kv().bytes());
  for (const char* what : {"weights, quantized", "weights, unquantized", "activations", "workspaces",
                           "stream and sampled ids", "recorded steps, by the device's free memory"})
    EXPECT_GT(held.at(what), 0) << what;
}

TEST_F(NullBackend, a_step_that_finds_no_memory_says_what_holds_it) {
  NullEngine null({});
  null.device.most = FarMemory::held() + 1000;
  ASSERT_TRUE(null.engine->submit(request({1, 2, 3}, 4)).ok());
  const auto events = null.engine->step();
  ASSERT_FALSE(events.ok());
  EXPECT_EQ(events.status().code(), Code::kResourceExhausted);
  for (const char* part : {"a step of 3 tokens needs activations and workspace", "of weights", "of KV cache",
                           "lower --context", "bytes of nothing"})
    EXPECT_NE(events.status().message().find(part), std::string::npos) << events.status().message();
}

TEST_F(NullBackend, a_kernel_that_the_device_lacks_is_declined_by_name_before_anything_runs) {
  const TinyFile tiny({});
  for (const auto& [backend, op] : {std::pair{"void", "feed_tokens"}, {"poor", "quantize_rows"}}) {
    NullDevice device(backend);
    const auto model = load_model(device, tiny.file());
    ASSERT_TRUE(model.ok()) << model.status().message();
    EngineOptions o;
    o.kv.context = 64;
    auto engine = InferenceEngine::create(device, **model, o);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    ASSERT_TRUE((*engine)->submit(request({1, 2, 3}, 2)).ok());
    const auto events = (*engine)->step();
    ASSERT_FALSE(events.ok());
    EXPECT_EQ(events.status().code(), Code::kDeclined);
    EXPECT_NE(events.status().message().find(text(op, " has no ", backend, " kernel")), std::string::npos)
        << events.status().message();
    EXPECT_TRUE(NullStream::called.empty());
  }
}

TEST_F(NullBackend, the_cpu_keeps_its_own_kernels) {
  TinyModel tiny;
  const Answer a = generate(*engine_for(tiny, {}), {request({1, 2, 3}, 4)}).at(0);
  EXPECT_EQ(a.tokens.size(), 4u);
  EXPECT_TRUE(NullStream::called.empty());
}

}  // namespace
}  // namespace ridge
