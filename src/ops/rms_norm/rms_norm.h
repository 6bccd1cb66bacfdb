#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct RmsNormArgs {
  Tensor y;  // out [rows, hidden] f32, bf16
  Tensor x;  // in  [rows, hidden] f32, bf16
  Tensor w;  // in  [hidden] f32
  float epsilon = 1e-5f;
  float weight_offset = 0.0f;  // 1 for checkpoints that store w - 1 (Gemma in Hugging Face form)
};
/// y[r, h] = x[r, h] / sqrt(mean_h(x[r, h]^2) + epsilon) * (w[h] + weight_offset). Sums are f32; y may be x.
/// A zero row with epsilon 0 gives NaN, as the formula does.
/// Errors: kInvalidArgument, naming operand, value found, value wanted.
/// Source: Zhang and Sennrich 2019, "Root mean square layer normalization", eq. 4.
Status rms_norm(Stream& stream, const RmsNormArgs& args);
RIDGE_OPERATOR(RmsNormArgs, describe_rms_norm)

}  // namespace ridge
