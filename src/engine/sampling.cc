#include "engine/sampling.h"

#include <algorithm>

#include "ops/sample/sample.h"

namespace ridge {

namespace {
/// Entry [row] (of `width` each) of a named tensor, or null when the plan has none.
template <class T>
T* entry(StepPlan& plan, const char* name, int64_t row, int64_t width = 1) {
  return plan.host(name).as<T>() + row * width;
}
}  // namespace

void write_sampling(StepPlan& plan, int64_t rows, int64_t vocab, int64_t history, int64_t biases,
                    const Tensor& ids) {
  SampleArgs a;
  a.ids = ids ? ids : plan.output("sampled_ids", kI32, {rows});
  a.status = plan.output("sampled_status", kI32, {rows});
  a.logprob = plan.output("sampled_logprob", kF32, {rows});
  a.logits = plan.find("logits");
  a.temperature = plan.input("temperature", kF32, {rows});
  a.top_k = plan.input("top_k", kI32, {rows});
  a.top_p = plan.input("top_p", kF32, {rows});
  a.min_p = plan.input("min_p", kF32, {rows});
  a.seed = plan.input("seed", kI64, {rows});
  a.position = plan.input("sample_position", kI64, {rows});
  if (history > 0) {
    a.history = plan.input("history", kI32, {rows, history});
    a.penalties = plan.input("penalties", kF32, {rows, 3});
  }
  if (biases > 0) {
    a.bias_ids = plan.input("bias_ids", kI32, {rows, biases});
    a.bias_values = plan.input("bias_values", kF32, {rows, biases});
  }
  a.vocab = vocab;
  plan.call("sampling", a);
}

void set_sample_row(StepPlan& plan, int64_t row, const SampleRow& v) {
  *entry<float>(plan, "temperature", row) = v.temperature;
  *entry<int32_t>(plan, "top_k", row) = static_cast<int32_t>(std::min<int64_t>(v.top_k, INT32_MAX));
  *entry<float>(plan, "top_p", row) = v.top_p;
  *entry<float>(plan, "min_p", row) = v.min_p;
  *entry<int64_t>(plan, "seed", row) = static_cast<int64_t>(v.seed);
  *entry<int64_t>(plan, "sample_position", row) = v.position;
  if (plan.has("history")) {
    const int64_t width = plan.find("history").dim(1);
    auto* history = entry<int32_t>(plan, "history", row, width);
    const auto used = v.history != nullptr ? static_cast<int64_t>(v.history->size()) : 0;
    if (used > 0) std::copy(v.history->begin(), v.history->end(), history);
    std::fill(history + used, history + width, -1);
    auto* penalties = entry<float>(plan, "penalties", row, 3);
    penalties[0] = v.repetition_penalty, penalties[1] = v.presence_penalty,
    penalties[2] = v.frequency_penalty;
  }
  if (plan.has("bias_ids")) {
    const int64_t width = plan.find("bias_ids").dim(1);
    auto* ids = entry<int32_t>(plan, "bias_ids", row, width);
    auto* values = entry<float>(plan, "bias_values", row, width);
    std::fill(ids, ids + width, -1);
    for (size_t i = 0; v.logit_bias != nullptr && i < v.logit_bias->size(); ++i)
      ids[i] = (*v.logit_bias)[i].first, values[i] = (*v.logit_bias)[i].second;
  }
}

}  // namespace ridge
