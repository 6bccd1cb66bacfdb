#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct NormLinearArgs {
  Tensor y;     // out [tokens, out] f32
  Tensor x;     // in  [tokens, in] f32
  Tensor norm;  // in  [in] f32
  Tensor w;     // in  [out, in] f16, bf16, q8_0, q4_0, q4_1, q5_0, q4_k, q6_k; linear's packed layout
  Tensor bias;  // in  [out] f32; may be absent
  float epsilon = 1e-5f;
  float weight_offset = 0.0f;
};
/// n = rms_norm(x, norm); y = n · wᵀ + bias: n never reaches memory. Replaces rms_norm, linear; formulas,
/// errors and sources are theirs.
Status norm_linear(Stream& stream, const NormLinearArgs& args);
RIDGE_OPERATOR(NormLinearArgs, describe_norm_linear)

}  // namespace ridge
