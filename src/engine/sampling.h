#pragma once
// The sampling chain of a step: appended to the plan after the model's logits, its per-row parameters set
// before each run.

#include <utility>
#include <vector>

#include "plan/step_plan.h"

namespace ridge {

/// Parameters of one row; ranges are checked where a request comes in.
struct SampleRow {
  float temperature = 0, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  float repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  uint64_t seed = 0;
  int64_t position = 0;  // of the token to draw: with the seed, the key of its random number
  const std::vector<int32_t>* history = nullptr;  // prompt and answer so far
  int64_t prompt_tokens = 0;
  const std::vector<std::pair<int32_t, float>>* logit_bias = nullptr;
};

/// Appends `sample` over the plan's "logits" [rows, vocab]; its results are the plan's sampled_ids,
/// sampled_status and sampled_logprob, [rows] each. `history` and `biases`: room per row, 0 for none. `ids`:
/// where the ids go instead, [rows] i32, or empty.
void write_sampling(StepPlan& plan, int64_t rows, int64_t vocab, int64_t history, int64_t biases,
                    const Tensor& ids = {});
void set_sample_row(StepPlan& plan, int64_t row, const SampleRow& values);

}  // namespace ridge
