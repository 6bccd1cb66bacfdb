#include "engine/forced.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/text.h"

namespace ridge {

Result<ForcedText> ForcedText::create(Device& device, const Model& model, const ForcedOptions& options) {
  ForcedText text(device, model, options);
  KvOptions kv;
  kv.k_type = kv.v_type = options.kv;
  kv.context = options.context;
  kv.pages = ceil_div(std::max<int64_t>(options.context, 1), kv.page_size);
  RIDGE_ASSIGN(text.pool_, KvPool::create(device, model.kv_shapes(), kv));
  RIDGE_ASSIGN(text.stream_, device.create_stream());
  return text;
}

Status ForcedText::prepare(int64_t tokens) {
  if (plan_ != nullptr && planned_ == tokens) return {};
  auto plan = std::make_unique<StepPlan>(*device_);
  BatchShape batch;
  batch.prefills = 1, batch.prefill_tokens = batch.logit_rows = tokens;
  model_->write_step(*plan, batch, pool_.pages(), options_.formats);
  PlanOptions options = options_.plan;
  options.graphs = false;  // a plan serves chunks of one length, but at any place
  RIDGE_TRY(plan->finish(options));
  plan_ = std::move(plan), planned_ = tokens;
  return {};
}

void ForcedText::fill(const std::vector<int32_t>& ids) {
  const auto n = static_cast<int64_t>(ids.size());
  std::copy(ids.begin(), ids.end(), plan_->host("token_ids").as<int32_t>());
  const auto count_from = [&](const char* name, int64_t first) {
    auto* at = plan_->host(name).as<int64_t>();
    std::iota(at, at + n, first);
  };
  count_from("positions", fed_);
  count_from("slots", fed_);  // the only sequence's page p is the pool's page p
  count_from("logit_rows", 0);
  auto* pages = plan_->host("prefill_page_table").as<int32_t>();
  std::iota(pages, pages + pool_.pages().max_pages, 0);
  *plan_->host("prefill_lengths").as<int64_t>() = fed_ + n;
  auto* start = plan_->host("prefill_query_start").as<int64_t>();
  start[0] = 0, start[1] = n;
  plan_->set_counter("tokens_written", n);
  plan_->set_chunks("prefill", {{fed_, n}});
  for (const KvShape& layer : model_->kv_shapes()) {
    const std::string window = layer.window > 0 ? text("_window_", layer.window) : "";
    plan_->set_counter("prefill_pairs" + window, causal_pairs(fed_, n, layer.window));
    plan_->set_counter("prefill_keys" + window, causal_keys(fed_, n, layer.window));
  }
}

Status ForcedText::check(const std::vector<int32_t>& ids) const {
  if (ids.empty()) return invalid_argument("there are no tokens to feed");
  if (fed_ + static_cast<int64_t>(ids.size()) > options_.context)
    return invalid_argument(ids.size(), " tokens after ", fed_, " exceed the context of ", options_.context);
  for (const int32_t id : ids)
    if (id < 0 || id >= model_->config().vocab)
      return invalid_argument("token ", id, " is outside the vocabulary of ", model_->config().vocab);
  return {};
}

Result<Tensor> ForcedText::feed(const std::vector<int32_t>& ids,
                                const std::function<void(const PlannedCall& call)>& after) {
  RIDGE_TRY(check(ids));
  RIDGE_TRY(prepare(static_cast<int64_t>(ids.size())));
  plan_->next_step();
  fill(ids);
  RIDGE_TRY(plan_->upload(*stream_));
  std::function<void(size_t)> of_call;
  if (after) of_call = [&](size_t call) { after(plan_->calls()[call]); };
  RIDGE_TRY(plan_->run(*stream_, nullptr, of_call));
  RIDGE_TRY(plan_->download(*stream_, true));
  RIDGE_TRY(stream_->synchronize());
  fed_ += static_cast<int64_t>(ids.size());
  return plan_->host("logits");
}

}  // namespace ridge
