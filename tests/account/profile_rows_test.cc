// The profile of real steps: rows sum to the step, limit and losses to the row, and the first and last token
// give the times of a request. Cases A2, A19 to A22, A25.

#include "lab/profile.h"

#include "account/flat_machine.h"
#include "account/losses.h"
#include "engine/generate.h"
#include "lab/report.h"
#include "lab/statistics.h"

namespace ridge {
namespace {

/// A profile of `requests` on a tiny model.
Profile profile_of(const std::vector<Request>& requests, int64_t prefill_tokens, int gap,
                   const Machine& machine, ActivationFormat activations = ActivationFormat::kInt8,
                   int64_t context = 512) {
  TinySpec spec;
  spec.context = 2048;
  TinyModel tiny(spec);
  EngineOptions o;
  o.kv.context = context, o.max_sequences = 4, o.prefill_tokens = prefill_tokens;
  o.formats.activations = activations;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  engine->set_observer(&profiler);
  generate(*engine, requests, gap);
  return profiler.finish(machine, 1);
}

/// The sum of an operator's rows of a phase.
Cost cost_in(const Profile& p, Phase phase, std::string_view op) {
  Cost sum;
  for (const ProfilePhase& at : p.phases)
    for (const ProfileRow& r : at.rows)
      if (at.phase == phase && r.op == op) sum += r.cost;
  return sum;
}

TEST(Profile, A2_real_chunks_execute_what_their_own_lengths_make_them) {
  // A prompt of 20 in chunks of 16 and 4; 2 layers, 4 heads of 32, 2 of keys and values; one answer token.
  const Profile p =
      profile_of({request(random_prompt(20, 1), 1)}, 16, 0, flat_machine(1e10, 1e11), ActivationFormat::kF32);
  const Cost attention = cost_in(p, Phase::kPrefill, "attention_prefill");
  // 16 * 17 / 2 and 4 * 16 + 4 * 5 / 2 pairs; keys in vectors of 16: 16 queries with one, 4 with two.
  EXPECT_EQ(attention.total_flops(), 2 * 4 * 4 * 32 * (136 + 74));
  EXPECT_EQ(attention.executed_flops[0], 2 * (2 * 4 * 32 * (16 * 16 + 4 * 32) + 2 * 4 * 32 * (136 + 74)));
  const Cost write = cost_in(p, Phase::kPrefill, "kv_write");
  const auto kv = static_cast<size_t>(DataClass::kKv);
  EXPECT_EQ(write.written_bytes[kv], 2 * 2 * 20 * 2 * 32 * 2);  // f16
  EXPECT_EQ(write.read_bytes[kv], 0);
}

TEST(Profile, A25_rows_sum_to_the_step_and_limit_and_losses_to_the_row) {
  const Profile p = profile_of({request(random_prompt(40, 1), 8), request(random_prompt(90, 2), 6)}, 32, 2,
                               flat_machine(1e10, 1e11));
  ASSERT_EQ(p.phases.size(), 3u) << "prefill, decode and mixed";
  for (const ProfilePhase& phase : p.phases) {
    SCOPED_TRACE(phase_name(phase.phase));
    ASSERT_GT(phase.rows.size(), 5u);
    EXPECT_EQ(phase.rows.back().op, "host");
    double rows = 0, host = 0;
    for (const ProfileRow& r : phase.rows) {
      rows += r.time_us;
      EXPECT_NEAR(r.verdict.limit_us + sum_of_losses(r.verdict), r.time_us, 1e-6 * r.time_us + 1e-9)
          << r.op << r.shape;
      EXPECT_GE(r.time_us, 0) << r.op;
      if (r.op == "host") host = r.time_us;
    }
    EXPECT_NEAR(rows, phase.wall_us, 1e-6 * phase.wall_us);
    EXPECT_DOUBLE_EQ(phase.loss_us(Loss::kHostGap), host);
    EXPECT_GT(phase.tokens, 0);
  }
}

TEST(Profile, rows_are_an_operator_and_a_shape_and_the_head_is_one_of_its_own) {
  const Profile p = profile_of({request(random_prompt(40, 1), 4)}, 512, 0, flat_machine(1e10, 1e11));
  ASSERT_EQ(p.phases[0].phase, Phase::kPrefill);
  std::set<std::string> keys;
  std::map<std::string, int64_t> calls;
  for (const ProfileRow& r : p.phases[0].rows) {
    EXPECT_TRUE(keys.insert(r.op + r.kernel + r.shape + r.formats).second)
        << "two rows of " << r.op << r.shape;
    calls[r.op] += r.calls;
  }
  EXPECT_EQ(calls["linear"], 2 * 7 + 1);
  EXPECT_EQ(calls["sample"], 1) << "the first sampling belongs to the first token";
  EXPECT_EQ(calls["attention_prefill"], 2);
  EXPECT_EQ(calls.count("attention_decode"), 0u);
  int heads = 0;
  for (const ProfileRow& r : p.phases[0].rows)
    if (r.op == "linear" && r.cost.total_flops() == 2 * 1 * 300 * 256) ++heads;
  EXPECT_EQ(heads, 1) << "the logits head runs on one row";
}

TEST(Profile, a_decode_has_a_row_for_every_length_and_shows_their_sum_in_one_line) {
  // 40 tokens of prompt, then 11 rounds behind 40 to 50 cached tokens; 2 layers, 4 heads of 32, 2 of keys.
  const Profile p = profile_of({request(random_prompt(40, 1), 12)}, 512, 0, flat_machine(1e10, 1e11));
  ASSERT_EQ(p.phases.size(), 2u);
  const ProfilePhase& decode = p.phases[1];
  std::vector<const ProfileRow*> rows;
  double us = 0;
  for (const ProfileRow& r : decode.rows)
    if (r.op == "attention_decode") rows.push_back(&r), us += r.time_us;
  ASSERT_EQ(rows.size(), 11u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]->shape, text("1 q, 4/2 x 32, 1 after ", 40 + i));
    EXPECT_EQ(rows[i]->calls, 2);
    EXPECT_EQ(rows[i]->cost.total_flops(), 2 * 4 * static_cast<int64_t>(41 + i) * 4 * 32);
  }
  const auto shown = [&](bool each) {
    std::vector<ShownRow> out;
    for (ShownRow& s : shown_rows(decode, each))
      if (s.row.op == "attention_decode") out.push_back(std::move(s));
    return out;
  };
  ASSERT_EQ(shown(false).size(), 1u);
  EXPECT_EQ(shown(true).size(), 11u);
  const ShownRow sum = shown(false)[0];
  EXPECT_EQ(sum.row.shape, "1 q, 4/2 x 32, 1 after 40..50");
  EXPECT_EQ(sum.row.calls, 22);
  EXPECT_EQ(sum.sums, rows);
  EXPECT_NEAR(sum.row.time_us, us, 1e-9 * us);
  EXPECT_NEAR(sum.row.verdict.limit_us + sum_of_losses(sum.row.verdict), us, 1e-6 * us);
  EXPECT_EQ(sum.row.cost, cost_in(p, Phase::kDecode, "attention_decode"));
  // Every row, whoever reads the numbers.
  const std::string json = profile_json(p), lines = profile_text(p, false),
                    each = profile_text(p, false, true), page = report_html(p, nullptr);
  EXPECT_NE(json.find("1 after 47\""), std::string::npos);
  EXPECT_EQ(json.find(".."), std::string::npos);
  EXPECT_NE(lines.find("1 after 40..50 "), std::string::npos) << lines;
  EXPECT_NE(lines.find("11 rows that differ in lengths alone"), std::string::npos);
  EXPECT_NE(each.find("1 after 47 "), std::string::npos) << each;
  EXPECT_EQ(each.find(".."), std::string::npos);
  EXPECT_NE(page.find("by length: the 11 rows of attention_decode"), std::string::npos);
  EXPECT_NE(page.find("1 after 47<"), std::string::npos);
}

TEST(Profile, a_sum_holds_no_others_and_few_rows_are_shown_apart) {
  const Profile p = profile_of({request(random_prompt(40, 1), 5)}, 512, 0, flat_machine(1e10, 1e11));
  for (const ShownRow& s : shown_rows(p.phases[1])) EXPECT_TRUE(s.sums.empty()) << s.row.shape;
  // Two sequences in one round are another call than one.
  const Profile two = profile_of({request(random_prompt(40, 1), 20), request(random_prompt(30, 2), 10)}, 512,
                                 0, flat_machine(1e10, 1e11));
  std::set<std::string> kinds;
  for (const ProfilePhase& phase : two.phases)
    for (const ShownRow& s : shown_rows(phase))
      for (const ProfileRow* r : s.sums) {
        EXPECT_EQ(r->op, s.row.op);
        kinds.insert(s.row.op + r->shape.substr(0, 4));
      }
  EXPECT_GE(kinds.size(), 2u);
  for (const ProfilePhase& phase : two.phases)
    for (const ShownRow& s : shown_rows(phase)) {
      std::set<char> queries;
      for (const ProfileRow* r : s.sums) queries.insert(r->shape[0]);
      EXPECT_LE(queries.size(), 1u) << s.row.shape;
    }
}

TEST(Profile, A2_attention_work_does_not_depend_on_the_chunks_it_came_in) {
  for (const int64_t chunk : {256, 1000, 137}) {
    const Profile p = profile_of({request(random_prompt(1000, 1), 1)}, chunk, 0, flat_machine(1e10, 1e11),
                                 ActivationFormat::kInt8, 1024);
    ASSERT_EQ(p.phases.size(), 1u);
    int64_t flops = 0;
    for (const ProfileRow& r : p.phases[0].rows)
      if (r.op == "attention_prefill") flops += r.cost.total_flops();
    EXPECT_EQ(flops, 2 * 4ll * 500500 * 4 * 32) << "chunks of " << chunk;  // layers, heads, head_dim
  }
}

TEST(Profile, A27_tokens_of_earlier_chunks_are_context_and_not_work) {
  // 1,024 tokens of which a step finds 1,008 in the cache: it computes 16.
  const Profile p = profile_of({request(random_prompt(1024, 1), 1)}, 1008, 0, flat_machine(1e10, 1e11),
                               ActivationFormat::kInt8, 1040);
  ASSERT_EQ(p.phases.size(), 1u);
  std::map<std::string, int64_t> flops;  // of attention, by its row
  for (const ProfileRow& r : p.phases[0].rows)
    if (r.op == "attention_prefill") flops[r.shape.substr(0, r.shape.find(' '))] += r.cost.total_flops();
  EXPECT_EQ(causal_pairs(1008, 16), 16264);
  EXPECT_EQ(causal_pairs(0, 1024), 524800);
  EXPECT_EQ(flops["16"], 2 * 4ll * 16264 * 4 * 32);  // layers, heads, head_dim
  EXPECT_EQ(flops["16"] + flops["1008"], 2 * 4ll * 524800 * 4 * 32);
  EXPECT_EQ(p.phases[0].tokens, 1008 + 16);
}

TEST(Profile, A2_two_prompts_in_one_step_are_two_and_not_one_long_one) {
  const Profile p = profile_of({request(random_prompt(100, 1), 1), request(random_prompt(100, 2), 1)}, 512, 0,
                               flat_machine(1e10, 1e11));
  int64_t flops = 0;
  for (const ProfileRow& r : p.phases[0].rows)
    if (r.op == "attention_prefill") flops += r.cost.total_flops();
  EXPECT_EQ(flops, 2 * 4ll * 10100 * 4 * 32);
}

TEST(Profile, one_workload_gives_prefill_and_decode_opposite_verdicts) {
  // 20 FLOP a byte: f32 activations of 256 tokens do more than that with a weight, one token does less.
  const Profile p = profile_of({request(random_prompt(256, 1), 8)}, 512, 0, flat_machine(1e10, 2e11),
                               ActivationFormat::kF32);
  ASSERT_EQ(p.phases.size(), 2u);
  int prefill = 0, decode = 0;
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (r.op != "linear" || r.cost.total_flops() / r.calls == 2 * 300 * 256) continue;  // not the head
      const bool is_prefill = phase.phase == Phase::kPrefill;
      ++(is_prefill ? prefill : decode);
      EXPECT_EQ(r.verdict.bound, is_prefill ? Bound::kCompute : Bound::kFarMemory)
          << phase_name(phase.phase) << r.shape;
    }
  EXPECT_GT(prefill, 0);
  EXPECT_GT(decode, 0);
}

// Times of requests, from spans that are given.

Profile of_spans(const std::vector<StageSpan>& spans) {
  Profiler profiler;
  for (const StageSpan& s : spans) profiler.on_stage(s.request, s.stage, s.begin_ns, s.end_ns);
  return profiler.finish(flat_machine(1e9, 1e9), 1);
}
constexpr int64_t kMs = 1000000;

TEST(Profile, A20_a_chunk_of_tokens_is_no_single_gap_and_the_first_token_is_none) {
  std::vector<StageSpan> spans = {{1, Stage::kQueue, 0, 5 * kMs},
                                  {1, Stage::kPrefill, 5 * kMs, 99 * kMs},
                                  {1, Stage::kSampling, 99 * kMs, 100 * kMs},
                                  {1, Stage::kDecodeRound, 100 * kMs, 140 * kMs}};
  for (int token = 0; token < 4; ++token) spans.push_back({1, Stage::kSampling, 140 * kMs, 140 * kMs});
  const Profile p = of_spans(spans);
  EXPECT_DOUBLE_EQ(p.ttft_us, 100e3);
  EXPECT_DOUBLE_EQ(p.tpot_us, 10e3) << "40 / 4: neither 40 / 1 nor 140 / 5";
  EXPECT_EQ(p.tpot.us, std::vector<double>{10e3});
  const RequestTimes t = request_times(spans, 1);
  EXPECT_EQ(t.tokens, 5);
  EXPECT_DOUBLE_EQ(t.total_us, t.ttft_us + 4 * t.tpot_us);
  // One token every 10 ms instead: the same.
  spans.resize(3);
  for (int64_t at = 100; at < 140; at += 10) {
    spans.push_back({1, Stage::kDecodeRound, at * kMs, (at + 9) * kMs});
    spans.push_back({1, Stage::kSampling, (at + 9) * kMs, (at + 10) * kMs});
  }
  EXPECT_DOUBLE_EQ(of_spans(spans).tpot_us, 10e3);
}

TEST(Profile, A21_answers_of_one_token_are_no_samples_of_the_time_per_token) {
  // Outputs of 1, 1 and 11 tokens; the last one's further ten take 500 ms.
  std::vector<StageSpan> spans;
  const auto first_token = [&](int64_t request) {
    spans.push_back({request, Stage::kPrefill, 0, 90 * kMs});
    spans.push_back({request, Stage::kSampling, 90 * kMs, 100 * kMs});
  };
  for (const int64_t request : {1, 2, 3}) first_token(request);
  for (int64_t t = 0; t < 10; ++t) {
    spans.push_back({3, Stage::kDecodeRound, (100 + 50 * t) * kMs, (149 + 50 * t) * kMs});
    spans.push_back({3, Stage::kSampling, (149 + 50 * t) * kMs, (150 + 50 * t) * kMs});
  }
  const Profile p = of_spans(spans);
  EXPECT_DOUBLE_EQ(p.ttft_us, 100e3);
  EXPECT_EQ(p.tpot_us, 0) << "the first request has none";
  EXPECT_EQ(p.tpot.us, std::vector<double>{50e3});
  EXPECT_EQ(p.tpot.requests, 3);
  EXPECT_DOUBLE_EQ(p.tpot.mean_us(), 50e3);
  EXPECT_NE(profile_text(p, false).find("TPOT 50.000 ms (n=1 of 3)"), std::string::npos)
      << profile_text(p, false);
  for (const char* part : {"\"n\": 1", "\"requests\": 3", "\"mean_us\": 50000.0", "\"p50_us\": 50000.0"})
    EXPECT_NE(profile_json(p).find(part), std::string::npos) << part;
  // Of answers of one token alone there is no figure at all.
  spans.clear();
  first_token(1), first_token(2);
  EXPECT_EQ(of_spans(spans).tpot.us.size(), 0u);
  EXPECT_EQ(profile_json(of_spans(spans)).find("p50_us"), std::string::npos);
}

TEST(Profile, A31_requests_that_failed_are_no_zeros_among_the_answers) {
  std::vector<StageSpan> spans;
  for (int64_t r = 1; r <= 10; ++r) {
    spans.push_back({r, Stage::kPrefill, 0, 100 * kMs});
    if (r > 5) continue;  // five never had a token
    spans.push_back({r, Stage::kSampling, 100 * kMs, 101 * kMs});
    spans.push_back({r, Stage::kDecodeRound, 101 * kMs, 300 * kMs});
    spans.push_back({r, Stage::kSampling, 300 * kMs, 301 * kMs});
  }
  const Profile p = of_spans(spans);
  EXPECT_EQ(p.tpot.requests, 5);
  EXPECT_EQ(p.tpot.unanswered, 5);
  EXPECT_EQ(p.tpot.us, std::vector<double>(5, 200e3));
  EXPECT_DOUBLE_EQ(p.tpot.mean_us(), 200e3);
  EXPECT_DOUBLE_EQ(percentile(p.tpot.us, 0.5), 200e3);
  const std::string lines = profile_text(p, false), json = profile_json(p);
  EXPECT_NE(lines.find("of 5 requests TPOT 200.000 ms (n=5 of 5)"), std::string::npos) << lines;
  EXPECT_NE(lines.find("; 5 without a token\n"), std::string::npos) << lines;
  EXPECT_NE(json.find("\"unanswered\": 5"), std::string::npos) << json;
  spans.resize(4);  // the first request alone
  EXPECT_EQ(profile_json(of_spans(spans)).find("unanswered"), std::string::npos);
}

TEST(RequestTimes, A19_the_time_to_the_first_token_starts_at_the_intended_arrival) {
  const std::vector<StageSpan> spans = {{1, Stage::kQueue, 0, 3 * kMs},  // the client was late
                                        {1, Stage::kNetworkWait, 3 * kMs, 5 * kMs},
                                        {1, Stage::kQueue, 5 * kMs, 25 * kMs},
                                        {1, Stage::kPrefill, 25 * kMs, 58 * kMs},
                                        {1, Stage::kSampling, 58 * kMs, 60 * kMs},
                                        {1, Stage::kNetworkWait, 60 * kMs, 62 * kMs}};
  const RequestTimes t = request_times(spans, 1);
  EXPECT_DOUBLE_EQ(t.ttft_us, 62e3);
  EXPECT_DOUBLE_EQ(t.ttft_sent_us, 59e3);
  EXPECT_DOUBLE_EQ(t.ttft_server_us, 55e3);
  EXPECT_DOUBLE_EQ(t.prefill_us, 35e3);  // and no time to first token
  EXPECT_DOUBLE_EQ(t.total_us, 62e3);
  EXPECT_DOUBLE_EQ(of_spans(spans).ttft_us, 62e3);
  // A later token's way back is no part of the first one's.
  std::vector<StageSpan> longer = spans;
  longer.push_back({1, Stage::kDecodeRound, 62 * kMs, 70 * kMs});
  longer.push_back({1, Stage::kSampling, 70 * kMs, 71 * kMs});
  longer.push_back({1, Stage::kNetworkWait, 71 * kMs, 74 * kMs});
  EXPECT_DOUBLE_EQ(request_times(longer, 1).ttft_us, 62e3);
  EXPECT_DOUBLE_EQ(request_times(longer, 1).tpot_us, 12e3);
}

TEST(RequestTimes, A22_a_request_that_is_put_back_queues_twice) {
  const std::vector<StageSpan> spans = {
      {1, Stage::kQueue, 10 * kMs, 12 * kMs},      {1, Stage::kPrefill, 12 * kMs, 60 * kMs},
      {1, Stage::kQueue, 60 * kMs, 70 * kMs},      {2, Stage::kQueue, 60 * kMs, 90 * kMs},
      {1, Stage::kPrefill, 70 * kMs, 80 * kMs},    {1, Stage::kSampling, 80 * kMs, 81 * kMs},
      {1, Stage::kDecodeRound, 81 * kMs, 90 * kMs}};
  const RequestTimes t = request_times(spans, 1);
  EXPECT_DOUBLE_EQ(t.queue_us, 12e3);
  EXPECT_DOUBLE_EQ(t.prefill_us, 69e3);
  EXPECT_EQ(t.clock_errors, 0);
}

TEST(RequestTimes, A22_a_span_that_ends_before_it_begins_is_counted_and_in_no_figure) {
  const std::vector<StageSpan> spans = {{1, Stage::kQueue, 60 * kMs, 12 * kMs},
                                        {1, Stage::kQueue, 12 * kMs, 13 * kMs},
                                        {1, Stage::kPrefill, 13 * kMs, 20 * kMs},
                                        {1, Stage::kSampling, 20 * kMs, 21 * kMs},
                                        {2, Stage::kSampling, 30 * kMs, 29 * kMs}};
  const RequestTimes t = request_times(spans, 1);
  EXPECT_EQ(t.clock_errors, 1);
  EXPECT_DOUBLE_EQ(t.queue_us, 1e3);
  EXPECT_DOUBLE_EQ(t.total_us, 9e3);
  EXPECT_EQ(request_times(spans, 2).clock_errors, 1);
  EXPECT_EQ(of_spans(spans).clock_errors, 2);
  EXPECT_NE(profile_json(of_spans(spans)).find("\"clock_errors\": 2"), std::string::npos);
}

TEST(Profile, A22_times_are_of_one_request_and_another_does_not_enter) {
  const Profile p = of_spans({{1, Stage::kQueue, 10 * kMs, 12 * kMs},
                              {2, Stage::kSampling, 12 * kMs, 13 * kMs},
                              {1, Stage::kPrefill, 12 * kMs, 29 * kMs},
                              {1, Stage::kSampling, 29 * kMs, 30 * kMs},
                              {2, Stage::kSampling, 90 * kMs, 99 * kMs}});
  EXPECT_DOUBLE_EQ(p.ttft_us, 20e3);
  EXPECT_EQ(p.tpot_us, 0);
}

/// The stages of a real run.
struct Spans final : StepObserver {
  std::map<int64_t, std::vector<StageSpan>> of;
  void on_step(const StepFacts&, const StepPlan&) override {}
  void on_stage(int64_t request, Stage stage, int64_t begin, int64_t end) override {
    of[request].push_back({request, stage, begin, end});
  }
};

TEST(Profile, A19_stages_follow_each_other_without_gap_and_sum_to_the_whole) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 128, o.max_sequences = 2, o.prefill_tokens = 16;
  const auto engine = engine_for(tiny, o);
  Spans spans;
  engine->set_observer(&spans);
  std::vector<Request> requests = {request(random_prompt(40, 1), 5), request(random_prompt(20, 2), 7),
                                   request(random_prompt(3, 3), 2)};
  generate(*engine, requests);
  ASSERT_EQ(spans.of.size(), 3u);
  for (const auto& [id, list] : spans.of) {
    EXPECT_EQ(list.front().stage, Stage::kQueue) << id;
    EXPECT_EQ(list.back().stage, Stage::kSampling) << id;
    int64_t sum = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_LE(list[i].begin_ns, list[i].end_ns) << id;
      if (i > 0) {
        EXPECT_EQ(list[i].begin_ns, list[i - 1].end_ns) << "request " << id << " span " << i;
      }
      sum += list[i].end_ns - list[i].begin_ns;
    }
    EXPECT_EQ(sum, list.back().end_ns - list.front().begin_ns);
  }
}

}  // namespace
}  // namespace ridge
