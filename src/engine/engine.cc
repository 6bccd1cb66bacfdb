#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "account/recorder.h"
#include "base/checked.h"
#include "ops/sample/sample.h"

namespace ridge {

namespace {
/// A stream's range, closed however its block is left.
class Range {
 public:
  Range(Stream& stream, const char* name) : stream_(stream) { stream_.open_range(name); }
  ~Range() { stream_.close_range(); }
  Range(const Range&) = delete;

 private:
  Stream& stream_;
};
}  // namespace

Result<EngineOptions> InferenceEngine::checked(const DecoderConfig& model, const EngineOptions& wanted) {
  EngineOptions o = wanted;
  if (o.max_sequences < 1 || o.max_sequences > limits::kBatchSequences)
    return invalid_argument("max_sequences is ", o.max_sequences, ": use 1 to ", limits::kBatchSequences);
  if (o.prefill_tokens < 1 || o.prefill_tokens > limits::kModelContext)
    return invalid_argument("prefill_tokens is ", o.prefill_tokens, ": use 1 to ", limits::kModelContext);
  if (o.kv.context < 0 || o.kv.context > model.context)
    return invalid_argument("context is ", o.kv.context, ", the model was made for ", model.context,
                            ": use 1 to ", model.context, ", or 0 for all of it");
  if (o.kv.context == 0) o.kv.context = model.context;
  if (o.kv.page_size < 1 || o.kv.page_size > KvPool::kMostTokensOfPage)
    return invalid_argument("page_size is ", o.kv.page_size, ": use 1 to ", KvPool::kMostTokensOfPage,
                            " tokens");
  if (o.kv.pages < 0)
    return invalid_argument("the KV cache has ", o.kv.pages,
                            " pages: use 1 or more, or 0 for what all sequences take");
  if (o.kv.pages == 0) o.kv.pages = o.max_sequences * ceil_div(o.kv.context, o.kv.page_size);
  return o;
}

Result<std::unique_ptr<InferenceEngine>> InferenceEngine::create(Device& device, const Model& model,
                                                                 const EngineOptions& wanted) {
  RIDGE_ASSIGN(const EngineOptions o, checked(model.config(), wanted));
  std::unique_ptr<InferenceEngine> engine(new InferenceEngine(device, model, o));
  RIDGE_ASSIGN(engine->pool_, KvPool::create(device, model.kv_shapes(), o.kv));
  RIDGE_ASSIGN(engine->stream_, device.create_stream());
  engine->kv_peak_.lengths.reserve(static_cast<size_t>(o.max_sequences));
  for (auto& event : engine->events_) {
    RIDGE_ASSIGN(event, engine->stream_->create_event());
  }
  if (!device.host_visible()) {
    const int64_t bytes = o.max_sequences * 4;
    RIDGE_ASSIGN(engine->last_ids_, device.allocate(bytes));
    RIDGE_ASSIGN(engine->ids_staging_, device.allocate_staging(2 * bytes));
    const std::vector<int32_t> zeros(static_cast<size_t>(o.max_sequences));
    RIDGE_TRY(device.upload(engine->last_ids_.data(), zeros.data(), bytes));
  }
  return engine;
}

InferenceEngine::~InferenceEngine() {
  // A step that was queued ahead may still use the engine's memory.
  if (stream_ != nullptr) stream_->synchronize().ignore();
}

Status InferenceEngine::check_request(const Request& r) const {
  const int64_t prompt = static_cast<int64_t>(r.prompt.size()), context = options_.kv.context;
  if (prompt == 0) return invalid_argument("the prompt has no tokens");
  if (r.max_new_tokens < 1)
    return invalid_argument("max_new_tokens is ", r.max_new_tokens, ": use 1 or more");
  if (prompt >= context)
    return invalid_argument("the prompt has ", prompt, " tokens, the context holds ", context,
                            " with at least one for the answer: shorten it, or raise the context");
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
  // A step in flight still writes to its pages; whoever takes them next is queued behind that step.
  if (ahead_)
    for (Sequence*& s : ahead_->batch.sampled)
      if (s == &found->second) s = nullptr;
  pool_.give_back(found->second.pages);
  sequences_.erase(found);
}
void InferenceEngine::cancel(int64_t request) {
  retire(request);
}

void InferenceEngine::reset() {
  stream_->synchronize().ignore();
  stream_->set_metering(false);
  ahead_.reset(), last_logits_ = {}, observer_ = nullptr;
  sequences_.clear(), owed_.clear(), plans_.clear();
  pool_.take_back_all();
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
      if (s.known() >= s.limit) continue;  // the step in flight samples its last token
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
  pad(&b);
  return b;
}

Result<InferenceEngine::Launched> InferenceEngine::launch(Batch batch, int64_t begin_ns) {
  Launched step;
  step.facts.begin_ns = begin_ns;
  RIDGE_ASSIGN(step.plan, plan_for(batch));
  StepPlan& plan = *step.plan;
  plan.next_step();
  step.plan_slot = plan.slot();
  fill_indices(plan, batch);
  fill_sampling(plan, batch);
  count(plan, batch);
  StepFacts& facts = step.facts;
  if (observer_ != nullptr) facts.calls.resize(plan.calls().size());
  facts.calls_begin_ns = now_ns();
  std::function<void(size_t)> after;
  if (observer_ != nullptr && observer_->wants_calls())
    after = [&](size_t call) { observer_->on_call(plan, call); };
  const Range range(*stream_, phase_name(batch.phase()));  // as the trace names it
  RIDGE_TRY(plan.upload(*stream_));
  const Status ran = plan.run(*stream_, observer_ != nullptr ? &facts.calls : nullptr, after);
  // What was queued before a stop may still read the inputs; nothing counts what it wrote.
  if (ran.code() == Code::kCancelled) RIDGE_TRY(stream_->synchronize());
  RIDGE_TRY(ran);
  RIDGE_TRY(plan.download(*stream_, options_.keep_logits));
  step.slot = static_cast<int>(launches_++ % 2);
  if (last_ids_.data() != nullptr && !batch.sampled.empty())
    RIDGE_TRY(stream_->download(ids_staging_.begin() + step.slot * last_ids_.bytes(), last_ids_.data(),
                                batch.shape.logit_rows * 4));
  RIDGE_TRY(stream_->record(*events_[step.slot]));
  for (const auto* group : {&batch.decodes, &batch.prefills})
    for (const Chunk& c : *group) c.sequence->cached += c.tokens, c.sequence->fed_row = -1;
  if (last_ids_.data() != nullptr)
    for (size_t row = 0; row < batch.sampled.size(); ++row)
      batch.sampled[row]->fed_row = static_cast<int64_t>(row);
  if (const int64_t used = pool_.total_pages() - pool_.free_pages(); used > kv_peak_.pages) {
    kv_peak_.pages = used, kv_peak_.tail_tokens = used * pool_.page_size();
    kv_peak_.lengths.clear();
    for (const auto& [id, s] : sequences_)
      if (!s.pages.empty()) kv_peak_.tail_tokens -= s.cached, kv_peak_.lengths.push_back(s.cached);
  }
  step.batch = std::move(batch);
  return step;
}

/// A step of decodes alone, of all sequences that there are, whose next step needs nothing of its tokens but
/// the ids: no penalties, pages for all, and some sequence that goes on.
bool InferenceEngine::may_look_ahead(const Launched& current) const {
  if (!options_.look_ahead || last_ids_.data() == nullptr || observer_ != nullptr) return false;
  if (!current.batch.prefills.empty() || current.batch.decodes.size() != sequences_.size()) return false;
  int64_t pages = 0, going_on = 0;
  for (const auto& [id, s] : sequences_) {
    if (s.sampling.penalised()) return false;
    pages += std::max<int64_t>(
        0, ceil_div(s.cached + 1, pool_.page_size()) - static_cast<int64_t>(s.pages.size()));
    going_on += s.known() < s.limit;
  }
  return going_on > 0 && pages <= pool_.free_pages();
}

void InferenceEngine::collect(const Launched& step, std::vector<TokenEvent>* events) {
  StepPlan& plan = *step.plan;
  if (step.batch.sampled.empty()) return;
  const bool staged = last_ids_.data() != nullptr;
  if (!staged || options_.keep_logits) last_logits_ = plan.host("logits", step.plan_slot);
  const auto* ids =
      staged ? reinterpret_cast<const int32_t*>(ids_staging_.begin() + step.slot * last_ids_.bytes())
             : plan.find("sampled_ids").as<int32_t>();
  const auto* states = plan.host("sampled_status", step.plan_slot).as<int32_t>();
  const auto* logprobs = plan.host("sampled_logprob", step.plan_slot).as<float>();
  for (size_t i = 0; i < step.batch.sampled.size(); ++i) {
    if (step.batch.sampled[i] == nullptr) continue;  // it ended before this step's tokens were seen
    Sequence& s = *step.batch.sampled[i];
    if (!ahead_) s.fed_row = -1;
    TokenEvent e{s.id, ids[i], logprobs[i], Finish::kNone, {}};
    if (states[i] != 0) {
      e.finish = Finish::kError;
      ++corrupted_requests_;
      e.error =
          internal_error("token ", s.tokens.size(), " cannot be sampled: ", sample_status_name(states[i]));
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

Status InferenceEngine::finish(Launched& step, std::vector<TokenEvent>* events) {
  RIDGE_TRY(events_[step.slot]->wait());
  RIDGE_TRY(stream_->read_fault());
  collect(step, events);
  step.facts.end_ns = now_ns();
  if (observer_ != nullptr && step.facts.calls.size() == step.plan->calls().size()) {
    RIDGE_ASSIGN(const int64_t begin, step.plan->read_times(*stream_, step.facts.end_ns, &step.facts.calls));
    if (begin != 0) step.facts.calls_begin_ns = begin;
    observe(step);
  }
  last_end_ns_ = step.facts.end_ns;
  return {};
}

Result<std::vector<TokenEvent>> InferenceEngine::step() {
  const int64_t begin_ns = now_ns();
  last_logits_ = {};
  std::vector<TokenEvent> events, failed = std::move(owed_);  // the failed come last: they have no logits
  owed_.clear();
  std::optional<Launched> current = std::move(ahead_);
  ahead_.reset();
  if (!current) {
    ++steps_;
    Batch batch = schedule(&failed);
    while (batch.tokens() == 0 && failed.empty() && restart_youngest()) batch = schedule(&failed);
    if (batch.tokens() == 0) return failed;
    auto launched = launch(std::move(batch), begin_ns);
    if (launched.status().code() == Code::kCancelled) owed_ = std::move(failed);
    RIDGE_ASSIGN(current, std::move(launched));
  }
  if (may_look_ahead(*current)) {
    ++steps_;
    auto launched = launch(schedule(&failed), now_ns());
    // One that a stop ended is the next step's matter: this one's tokens are still to come.
    if (!launched.ok() && launched.status().code() != Code::kCancelled) return launched.status();
    if (launched.ok()) ahead_ = launched.take();
  }
  RIDGE_TRY(finish(*current, &events));
  for (const TokenEvent& e : events)
    if (e.finish != Finish::kNone) retire(e.request);
  events.insert(events.end(), failed.begin(), failed.end());
  return events;
}

}  // namespace ridge
