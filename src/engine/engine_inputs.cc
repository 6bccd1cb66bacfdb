// What the host writes before a step and tells its observer after it.

#include <algorithm>

#include "engine/engine.h"
#include "engine/sampling.h"

namespace ridge {

void InferenceEngine::fill_group(StepPlan& plan, const std::vector<Chunk>& group, bool prefill) {
  if (group.empty()) return;
  const std::string prefix = prefill ? "prefill_" : "decode_";
  auto* table = plan.host(prefix + "page_table").as<int32_t>();
  auto* lengths = plan.host(prefix + "lengths").as<int64_t>();
  const int64_t width = pool_.pages().max_pages;
  for (size_t i = 0; i < group.size(); ++i) {
    const Sequence& s = *group[i].sequence;
    std::copy(s.pages.begin(), s.pages.end(), table + static_cast<int64_t>(i) * width);
    lengths[i] = s.cached + group[i].tokens;
  }
  if (!prefill) return;
  auto* start = plan.host("prefill_query_start").as<int64_t>();
  start[0] = 0;
  for (size_t i = 0; i < group.size(); ++i) start[i + 1] = start[i] + group[i].tokens;
}

void InferenceEngine::fill_indices(StepPlan& plan, const Batch& batch) {
  auto* ids = plan.host("token_ids").as<int32_t>();
  auto* source = plan.has("token_source") ? plan.host("token_source").as<int32_t>() : nullptr;
  auto* positions = plan.host("positions").as<int64_t>();
  auto* slots = plan.host("slots").as<int64_t>();
  auto* rows = plan.host("logit_rows").as<int64_t>();
  int64_t t = 0, row = 0;
  for (const auto* group : {&batch.decodes, &batch.prefills})
    for (const Chunk& c : *group) {
      const Sequence& s = *c.sequence;
      for (int64_t i = s.cached; i < s.cached + c.tokens; ++i, ++t) {
        const bool fed = i == static_cast<int64_t>(s.tokens.size());  // sampled, and not yet seen here
        ids[t] = fed ? 0 : s.tokens[static_cast<size_t>(i)];
        if (source != nullptr) source[t] = fed ? static_cast<int32_t>(s.fed_row) : -1;
        positions[t] = i;
        slots[t] =
            s.pages[static_cast<size_t>(i / pool_.page_size())] * pool_.page_size() + i % pool_.page_size();
      }
      if (s.cached + c.tokens >= s.prompt) rows[row++] = t - 1;
    }
  if (batch.prefills.empty())
    for (; t < batch.shape.tokens(); ++t) {  // rows of padding: no keys, nothing cached
      if (source != nullptr) source[t] = -1;
      ids[t] = 0, positions[t] = 0, slots[t] = -1, rows[t] = t;
      plan.host("decode_lengths").as<int64_t>()[t] = 0;
    }
  fill_group(plan, batch.decodes, false);
  fill_group(plan, batch.prefills, true);
}

void InferenceEngine::count(StepPlan& plan, const Batch& batch) {
  plan.set_counter("tokens_written", batch.tokens());
  const auto is_fed = [](const Chunk& c) { return c.sequence->fed_row >= 0; };
  plan.set_counter("tokens_fed", std::count_if(batch.decodes.begin(), batch.decodes.end(), is_fed));
  for (const bool prefill : {false, true}) {
    std::vector<QueryChunk> chunks;
    for (const Chunk& c : prefill ? batch.prefills : batch.decodes)
      chunks.push_back({c.sequence->cached, c.tokens});
    plan.set_chunks(prefill ? "prefill" : "decode", std::move(chunks));
  }
  std::vector<int64_t> windows = {0};
  for (const KvShape& s : model_->kv_shapes())
    if (std::find(windows.begin(), windows.end(), s.window) == windows.end()) windows.push_back(s.window);
  for (const int64_t window : windows) {
    const std::string suffix = window > 0 ? text("_window_", window) : "";
    for (const bool prefill : {false, true}) {
      int64_t pairs = 0, keys = 0;
      for (const Chunk& c : prefill ? batch.prefills : batch.decodes) {
        pairs += causal_pairs(c.sequence->cached, c.tokens, window);
        keys += causal_keys(c.sequence->cached, c.tokens, window);
      }
      plan.set_counter(text(prefill ? "prefill" : "decode", "_pairs", suffix), pairs);
      plan.set_counter(text(prefill ? "prefill" : "decode", "_keys", suffix), keys);
    }
  }
}

void InferenceEngine::fill_sampling(StepPlan& plan, const Batch& batch) {
  for (size_t i = 0; i < batch.sampled.size(); ++i) {
    const Sequence& s = *batch.sampled[i];
    const SamplingParams& p = s.sampling;
    SampleRow row;
    row.temperature = p.temperature, row.top_k = p.top_k, row.top_p = p.top_p, row.min_p = p.min_p;
    row.repetition_penalty = p.repetition_penalty, row.presence_penalty = p.presence_penalty;
    row.frequency_penalty = p.frequency_penalty, row.seed = p.seed;
    row.position = s.known();
    row.history = &s.tokens, row.prompt_tokens = s.prompt, row.logit_bias = &p.logit_bias;
    set_sample_row(plan, static_cast<int64_t>(i), row);
  }
  for (auto i = static_cast<int64_t>(batch.sampled.size()); i < batch.shape.logit_rows; ++i)
    set_sample_row(plan, i, {});
}

void InferenceEngine::observe(Launched& step) {
  StepFacts& facts = step.facts;
  const Batch& batch = step.batch;
  facts.phase = batch.phase();
  facts.decode_tokens = static_cast<int64_t>(batch.decodes.size());
  facts.prefill_tokens = batch.shape.prefill_tokens;
  facts.logit_rows = static_cast<int64_t>(batch.sampled.size());
  observer_->on_step(facts, *step.plan);
  observe_stages(batch, facts, *step.plan);
}

size_t InferenceEngine::where_it_samples(const StepPlan& plan) {
  if (sampling_call_.plan != plan.id()) {
    sampling_call_ = {plan.id(), kNowhere};
    for (size_t c = 0; c < plan.calls().size(); ++c)
      if (std::string_view(plan.calls()[c].call.op->name()) == "sample") sampling_call_.call = c;
  }
  return sampling_call_.call;
}

/// Each request's part of the step: its prefill chunk or decode round up to the sampling, then the sampling.
void InferenceEngine::observe_stages(const Batch& batch, const StepFacts& facts, const StepPlan& plan) {
  const size_t sampling = where_it_samples(plan);
  const int64_t sampling_begin = sampling == kNowhere ? facts.end_ns
                                 : sampling > 0       ? facts.calls[sampling - 1].end_ns
                                                      : facts.calls_begin_ns;
  for (const auto* group : {&batch.decodes, &batch.prefills})
    for (const Chunk& c : *group) {
      Sequence& s = *c.sequence;
      if (s.last_ns == 0)
        observer_->on_stage(s.id, Stage::kQueue, s.arrival_ns, facts.begin_ns), s.last_ns = facts.begin_ns;
      const bool sampled = std::find(batch.sampled.begin(), batch.sampled.end(), &s) != batch.sampled.end();
      // From the end of its previous step: what the host does between two steps belongs to the round that
      // waits for it.
      const int64_t end = sampled ? sampling_begin : facts.end_ns;
      observer_->on_stage(s.id, group == &batch.decodes ? Stage::kDecodeRound : Stage::kPrefill, s.last_ns,
                          end);
      if (sampled) observer_->on_stage(s.id, Stage::kSampling, sampling_begin, facts.end_ns);
      s.last_ns = facts.end_ns;
    }
}

}  // namespace ridge
