#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "account/recorder.h"
#include "base/checked.h"
#include "engine/sampling.h"
#include "ops/sample/sample.h"

namespace ridge {

namespace {
// Plans kept: a decode bucket, the usual prefill chunk, and odd last chunks.
constexpr size_t kPlans = 16;
}  // namespace

Result<std::unique_ptr<InferenceEngine>> InferenceEngine::create(Device& device, const Model& model,
                                                                 const EngineOptions& wanted) {
  EngineOptions o = wanted;
  const DecoderConfig& c = model.config();
  if (o.max_sequences < 1 || o.max_sequences > limits::kBatchSequences)
    return invalid_argument("max_sequences is ", o.max_sequences, ": use 1 to ", limits::kBatchSequences);
  if (o.prefill_tokens < 1)
    return invalid_argument("prefill_tokens is ", o.prefill_tokens, ": use 1 or more");
  if (o.kv.context == 0) o.kv.context = c.context;
  if (o.kv.context > c.context)
    return invalid_argument("context is ", o.kv.context, ", the model was made for ", c.context);
  if (o.kv.page_size < 1) return invalid_argument("page_size is ", o.kv.page_size, ": use 1 to 4096");
  if (o.kv.pages == 0) o.kv.pages = o.max_sequences * ceil_div(o.kv.context, o.kv.page_size);
  std::unique_ptr<InferenceEngine> engine(new InferenceEngine(device, model, o));
  RIDGE_ASSIGN(engine->pool_, KvPool::create(device, model.kv_shapes(), o.kv));
  RIDGE_ASSIGN(engine->stream_, device.create_stream());
  return engine;
}

Status InferenceEngine::check_request(const Request& r) const {
  const int64_t prompt = static_cast<int64_t>(r.prompt.size()), context = options_.kv.context;
  if (prompt == 0) return invalid_argument("the prompt has no tokens");
  if (r.max_new_tokens < 1)
    return invalid_argument("max_new_tokens is ", r.max_new_tokens, ": use 1 or more");
  if (prompt >= context)
    return invalid_argument("the prompt has ", prompt, " tokens, the context holds ", context,
                            " with at least one for the answer: shorten it, or raise --context");
  for (size_t i = 0; i < r.prompt.size(); ++i)
    if (r.prompt[i] < 0 || r.prompt[i] >= model_->config().vocab)
      return invalid_argument("prompt token ", i, " is ", r.prompt[i], ", the vocabulary has ",
                              model_->config().vocab);
  if (const int64_t pages = ceil_div(prompt + 1, pool_.page_size()); pages > pool_.total_pages())
    return resource_exhausted("the prompt needs ", pages, " KV pages, there are ", pool_.total_pages());
  const SamplingParams& s = r.sampling;
  if (!(s.temperature >= 0) || std::isinf(s.temperature))
    return invalid_argument("temperature is ", s.temperature, ": use 0 or more");
  if (s.top_k < 0) return invalid_argument("top_k is ", s.top_k, ": use 0 (off) or more");
  if (!(s.top_p > 0 && s.top_p <= 1)) return invalid_argument("top_p is ", s.top_p, ": use above 0 to 1");
  if (!(s.min_p >= 0 && s.min_p <= 1)) return invalid_argument("min_p is ", s.min_p, ": use 0 to 1");
  if (!(s.repetition_penalty > 0) || std::isinf(s.repetition_penalty))
    return invalid_argument("repetition_penalty is ", s.repetition_penalty, ": use above 0");
  for (const float p : {s.presence_penalty, s.frequency_penalty})
    if (!std::isfinite(p))
      return invalid_argument("a presence or frequency penalty is ", p, ": use a finite number");
  for (const auto& [id, bias] : s.logit_bias)
    if (id < 0 || id >= model_->config().vocab || std::isnan(bias))
      return invalid_argument("logit_bias ", id, ": ", bias, " is outside the vocabulary of ",
                              model_->config().vocab, ", or not a number");
  return {};
}

Result<int64_t> InferenceEngine::submit(Request r) {
  RIDGE_TRY(check_request(r));
  Sequence s;
  s.id = next_id_++;
  s.prompt = static_cast<int64_t>(r.prompt.size());
  s.limit = s.prompt + std::min(r.max_new_tokens, options_.kv.context - s.prompt);
  s.tokens = std::move(r.prompt);
  s.sampling = std::move(r.sampling);
  s.end_ids = std::move(r.end_ids);
  s.arrival_ns = r.arrival_ns != 0 ? r.arrival_ns : now_ns();
  const int64_t id = s.id;
  sequences_.emplace(id, std::move(s));
  return id;
}

void InferenceEngine::retire(int64_t id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  pool_.give_back(found->second.pages);
  sequences_.erase(found);
}
void InferenceEngine::cancel(int64_t request) {
  retire(request);
}

/// All the pages that `tokens` take, or none: who waits must not hold what others could finish with.
Status InferenceEngine::grow(Sequence& s, int64_t tokens) {
  const int64_t missing = ceil_div(tokens, pool_.page_size()) - static_cast<int64_t>(s.pages.size());
  if (missing > pool_.free_pages())
    return resource_exhausted("the request needs ", missing, " more KV pages of ", pool_.page_size(),
                              " tokens, ", pool_.free_pages(), " of ", pool_.total_pages(),
                              " are free: run fewer sequences at a time, or give the cache more pages");
  for (int64_t i = 0; i < missing; ++i) {
    RIDGE_ASSIGN(const int32_t page, pool_.take());
    s.pages.push_back(page);
  }
  return {};
}

/// When all wait for pages that prompts hold between their chunks: the youngest such prompt gives them back
/// and starts anew. False when only the oldest holds any.
bool InferenceEngine::restart_youngest() {
  for (auto at = sequences_.rbegin(); at != sequences_.rend(); ++at) {
    Sequence& s = at->second;
    if (s.pages.empty() || s.id == sequences_.begin()->first) continue;
    pool_.give_back(s.pages);
    s.pages.clear(), s.cached = 0;
    return true;
  }
  return false;
}

/// Decodes first, then prompts in order of arrival while the budget lasts. A decode without a page left ends
/// with an error of its own; a prompt without pages waits, and those after it with it.
InferenceEngine::Batch InferenceEngine::schedule(std::vector<TokenEvent>* events) {
  Batch b;
  int64_t budget = options_.prefill_tokens, running = 0;
  bool waiting = false;
  for (auto at = sequences_.begin(); at != sequences_.end();) {
    auto& [id, s] = *at++;
    if (running == options_.max_sequences) break;
    ++running;
    if (!s.prefilling()) {
      if (Status grown = grow(s, s.cached + 1); !grown.ok()) {
        events->push_back({id, -1, 0, Finish::kError, grown});
        retire(id);  // its pages serve those after it
        continue;
      }
      b.decodes.push_back({&s, 1});
      continue;
    }
    const int64_t chunk = std::min(budget, s.prompt - s.cached);
    if (chunk == 0 || waiting) continue;
    if (!grow(s, s.cached + chunk).ok()) {
      waiting = true;
      continue;
    }
    budget -= chunk;
    b.prefills.push_back({&s, chunk});
  }
  for (const Chunk& c : b.decodes) b.sampled.push_back(c.sequence);
  for (const Chunk& c : b.prefills) {
    b.shape.prefill_tokens += c.tokens;
    if (c.sequence->cached + c.tokens == c.sequence->prompt) b.sampled.push_back(c.sequence);
  }
  b.shape.decodes = static_cast<int64_t>(b.decodes.size());
  b.shape.prefills = static_cast<int64_t>(b.prefills.size());
  b.shape.logit_rows = static_cast<int64_t>(b.sampled.size());
  return b;
}

int64_t InferenceEngine::plan_bytes() const {
  int64_t bytes = 0;
  for (const CachedPlan& p : plans_) bytes += p.plan->activation_bytes() + p.plan->workspace_bytes();
  return bytes;
}

Result<StepPlan*> InferenceEngine::plan_for(const Batch& batch) {
  PlanKey key{batch.shape, 0, 0};
  for (const Sequence* s : batch.sampled) {
    const SamplingParams& p = s->sampling;
    // Tables of penalties and biases come in powers of two, so that a growing answer meets few new plans.
    const bool penalised = p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0;
    const auto bucket = [](size_t n) {
      return n == 0 ? int64_t{0} : int64_t{1} << (64 - __builtin_clzll(n | 15));
    };
    if (penalised) key.history = std::max(key.history, bucket(s->tokens.size()));
    key.biases = std::max(key.biases, bucket(p.logit_bias.size()));
  }
  for (CachedPlan& p : plans_)
    if (p.key == key) {
      p.used = steps_;
      return p.plan.get();
    }
  auto plan = std::make_unique<StepPlan>(*device_);
  model_->write_step(*plan, batch.shape, pool_.pages(), options_.formats);
  if (batch.shape.logit_rows > 0)
    write_sampling(*plan, batch.shape.logit_rows, model_->config().vocab, key.history, key.biases);
  RIDGE_TRY(plan->finish(options_.plan));
  if (plans_.size() == kPlans)
    plans_.erase(
        std::min_element(plans_.begin(), plans_.end(), [](auto& a, auto& b) { return a.used < b.used; }));
  plans_.push_back({key, std::move(plan), steps_});
  return plans_.back().plan.get();
}

void InferenceEngine::fill_group(StepPlan& plan, const std::vector<Chunk>& group, bool prefill) {
  if (group.empty()) return;
  const std::string prefix = prefill ? "prefill_" : "decode_";
  auto* table = plan.find(prefix + "page_table").as<int32_t>();
  auto* lengths = plan.find(prefix + "lengths").as<int64_t>();
  const int64_t width = pool_.pages().max_pages;
  for (size_t i = 0; i < group.size(); ++i) {
    const Sequence& s = *group[i].sequence;
    std::copy(s.pages.begin(), s.pages.end(), table + static_cast<int64_t>(i) * width);
    lengths[i] = s.cached + group[i].tokens;
  }
  if (!prefill) return;
  auto* start = plan.find("prefill_query_start").as<int64_t>();
  start[0] = 0;
  for (size_t i = 0; i < group.size(); ++i) start[i + 1] = start[i] + group[i].tokens;
}

void InferenceEngine::fill_indices(StepPlan& plan, const Batch& batch) {
  auto* ids = plan.find("token_ids").as<int32_t>();
  auto* positions = plan.find("positions").as<int64_t>();
  auto* slots = plan.find("slots").as<int64_t>();
  auto* rows = plan.find("logit_rows").as<int64_t>();
  int64_t t = 0, row = 0;
  for (const auto* group : {&batch.decodes, &batch.prefills})
    for (const Chunk& c : *group) {
      const Sequence& s = *c.sequence;
      for (int64_t i = s.cached; i < s.cached + c.tokens; ++i, ++t) {
        ids[t] = s.tokens[static_cast<size_t>(i)];
        positions[t] = i;
        slots[t] =
            s.pages[static_cast<size_t>(i / pool_.page_size())] * pool_.page_size() + i % pool_.page_size();
      }
      if (s.cached + c.tokens >= s.prompt) rows[row++] = t - 1;
    }
  fill_group(plan, batch.decodes, false);
  fill_group(plan, batch.prefills, true);
}

void InferenceEngine::count(StepPlan& plan, const Batch& batch) {
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
    row.position = static_cast<int64_t>(s.tokens.size());
    row.history = &s.tokens, row.prompt_tokens = s.prompt, row.logit_bias = &p.logit_bias;
    set_sample_row(plan, static_cast<int64_t>(i), row);
  }
}

void InferenceEngine::collect(StepPlan& plan, Batch& batch, std::vector<TokenEvent>* events) {
  for (const auto* group : {&batch.decodes, &batch.prefills})
    for (const Chunk& c : *group) c.sequence->cached += c.tokens;
  if (batch.sampled.empty()) return;
  last_logits_ = plan.find("logits");
  const auto* ids = plan.find("sampled_ids").as<int32_t>();
  const auto* states = plan.find("sampled_status").as<int32_t>();
  const auto* logprobs = plan.find("sampled_logprob").as<float>();
  for (size_t i = 0; i < batch.sampled.size(); ++i) {
    Sequence& s = *batch.sampled[i];
    TokenEvent e{s.id, ids[i], logprobs[i], Finish::kNone, {}};
    if (states[i] != 0) {
      e.finish = Finish::kError;
      ++corrupted_requests_;
      e.error =
          internal_error("the logits of token ", s.tokens.size(), " are ", sample_status_name(states[i]));
    } else {
      s.tokens.push_back(e.token);
      if (std::find(s.end_ids.begin(), s.end_ids.end(), e.token) != s.end_ids.end())
        e.finish = Finish::kEnd;
      else if (static_cast<int64_t>(s.tokens.size()) >= s.limit)
        e.finish = Finish::kLength;
    }
    events->push_back(e);
  }
}

Result<std::vector<TokenEvent>> InferenceEngine::step() {
  StepFacts facts;
  facts.begin_ns = now_ns();
  ++steps_;
  last_logits_ = {};
  std::vector<TokenEvent> events, failed;  // the failed come last: they have no logits
  Batch batch = schedule(&failed);
  while (batch.shape.tokens() == 0 && failed.empty() && restart_youngest()) batch = schedule(&failed);
  if (batch.shape.tokens() == 0) return failed;
  RIDGE_ASSIGN(StepPlan* const plan, plan_for(batch));
  fill_indices(*plan, batch);
  fill_sampling(*plan, batch);
  count(*plan, batch);
  if (observer_ != nullptr) facts.calls.resize(plan->calls().size());
  facts.calls_begin_ns = now_ns();
  std::function<void(size_t)> after;
  if (observer_ != nullptr && observer_->wants_calls())
    after = [&](size_t call) { observer_->on_call(*plan, call); };
  RIDGE_TRY(plan->run(*stream_, observer_ != nullptr ? &facts.calls : nullptr, after));
  RIDGE_TRY(stream_->synchronize());
  collect(*plan, batch, &events);
  facts.end_ns = now_ns();
  if (observer_ != nullptr) {
    facts.phase = batch.prefills.empty()  ? Phase::kDecode
                  : batch.decodes.empty() ? Phase::kPrefill
                                          : Phase::kMixed;
    facts.decode_tokens = batch.shape.decodes, facts.prefill_tokens = batch.shape.prefill_tokens;
    facts.logit_rows = batch.shape.logit_rows;
    observer_->on_step(facts, *plan);
    observe_stages(batch, facts, *plan);
  }
  for (const TokenEvent& e : events)
    if (e.finish != Finish::kNone) retire(e.request);
  events.insert(events.end(), failed.begin(), failed.end());
  return events;
}

/// Each request's part of the step: its prefill chunk or decode round up to the sampling, then the sampling.
void InferenceEngine::observe_stages(const Batch& batch, const StepFacts& facts, const StepPlan& plan) {
  int64_t sampling_begin = facts.end_ns;
  for (size_t c = 0; c < plan.calls().size(); ++c)
    if (std::string_view(plan.calls()[c].call.op->name()) == "sample")
      sampling_begin = c > 0 ? facts.calls[c - 1].end_ns : facts.calls_begin_ns;
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
