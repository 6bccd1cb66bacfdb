// Which plan a batch runs: written once for each of the few shapes that batches come in.

#include <algorithm>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/sampling.h"
#include "ops/feed_tokens/feed_tokens.h"

namespace ridge {

// Plans kept: a decode bucket, the usual prefill chunk, and odd last chunks.
constexpr size_t kPlans = 16;
// Where batches of decodes come in sizes of their own, recorded: more of them.
constexpr size_t kRecordedPlans = 32;

PlanBytes InferenceEngine::plan_bytes_by_kind() const {
  PlanBytes b;
  b.staging = ids_staging_.bytes();
  b.stream = stream_->held_bytes() + last_ids_.bytes();
  for (const CachedPlan& p : plans_)
    b.activations += p.plan->activation_bytes(), b.workspaces += p.plan->workspace_bytes(),
        b.staging += p.plan->staging_bytes(), b.graphs += p.plan->graph_bytes();
  return b;
}
int64_t InferenceEngine::plan_bytes() const {
  const PlanBytes b = plan_bytes_by_kind();
  return b.activations + b.workspaces;
}

/// Where steps are recorded, batches of decodes come in few sizes: rows without keys follow the real ones.
void InferenceEngine::pad(Batch* batch) const {
  BatchShape& shape = batch->shape;
  if (!options_.plan.graphs || !stream_->records_graphs() || shape.prefills > 0) return;
  int64_t bucket = 1;  // 1, 2, 3, 4, 6, 8, 12, 16 ...
  while (bucket < shape.decodes)
    bucket = bucket < 4 ? bucket + 1 : (bucket & (bucket - 1)) == 0 ? bucket / 2 * 3 : bucket / 3 * 4;
  shape.decodes = shape.logit_rows = std::min(bucket, options_.max_sequences);
}

Result<StepPlan*> InferenceEngine::plan_for(const Batch& batch) {
  PlanKey key{batch.shape, 0, 0};
  for (const Sequence* s : batch.sampled) {
    const SamplingParams& p = s->sampling;
    // Tables of penalties and biases come in powers of two, so that a growing answer meets few new plans.
    const auto bucket = [](size_t n) {
      return n == 0 ? int64_t{0} : int64_t{1} << (64 - __builtin_clzll(n | 15));
    };
    if (p.penalised()) key.history = std::max(key.history, bucket(s->tokens.size()));
    key.biases = std::max(key.biases, bucket(p.logit_bias.size()));
  }
  for (CachedPlan& p : plans_)
    if (p.key == key) {
      p.used = steps_;
      return p.plan.get();
    }
  RIDGE_ASSIGN(auto plan, write_plan(batch.shape, key.history, key.biases));
  if (plans_.size() == (stream_->records_graphs() ? kRecordedPlans : kPlans))
    plans_.erase(
        std::min_element(plans_.begin(), plans_.end(), [](auto& a, auto& b) { return a.used < b.used; }));
  plans_.push_back({key, std::move(plan), steps_});
  return plans_.back().plan.get();
}

Result<std::unique_ptr<StepPlan>> InferenceEngine::write_plan(const BatchShape& shape, int64_t history,
                                                              int64_t biases) {
  auto plan = std::make_unique<StepPlan>(*device_);
  Tensor ids;
  if (!device_->host_visible()) {
    ids = Tensor(last_ids_.data(), kI32, {options_.max_sequences});
    FeedTokensArgs feed;
    feed.ids = plan->input("token_ids", kI32, {shape.tokens()});
    feed.source = plan->input("token_source", kI32, {shape.tokens()});
    feed.sampled = ids, feed.fed = plan->counter("tokens_fed");
    plan->call("tokens", feed);
  }
  model_->write_step(*plan, shape, pool_.pages(), options_.formats);
  if (shape.logit_rows > 0)
    write_sampling(*plan, shape.logit_rows, model_->config().vocab, history, biases,
                   ids ? ids.slice(0, shape.logit_rows) : ids);
  PlanOptions options = options_.plan;
  options.graphs = options.graphs && shape.prefills == 0;
  const Status made = plan->finish(options);
  if (made.code() == Code::kResourceExhausted)
    return made.within(text("a step of ", shape.tokens(), " tokens needs activations and workspace beside ",
                            bytes_text(double(model_->weights().held_bytes())), " of weights and ",
                            bytes_text(double(pool_.bytes())),
                            " of KV cache: lower --context, --batch or --prefill-tokens"));
  RIDGE_TRY(made);
  return plan;
}

}  // namespace ridge
