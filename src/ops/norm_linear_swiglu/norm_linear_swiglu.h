#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct NormLinearSwigluArgs {
  Tensor y;       // out [tokens, inner] f32
  Tensor x;       // in  [tokens, in] f32
  Tensor norm;    // in  [in] f32
  Tensor w_gate;  // in  [inner, in] f16, bf16, q8_0 … q6_k; plain as in the file, quantized in linear's
                  // packed layout
  Tensor w_up;    // in  [inner, in], dtype and layout of w_gate
  float epsilon = 1e-5f;
  float weight_offset = 0.0f;
};
/// n = rms_norm(x, norm); y = silu(n · w_gateᵀ) * (n · w_upᵀ): n never reaches memory. Replaces rms_norm,
/// linear_swiglu; formulas, errors and sources are theirs.
Status norm_linear_swiglu(Stream& stream, const NormLinearSwigluArgs& args);
RIDGE_OPERATOR(NormLinearSwigluArgs, describe_norm_linear_swiglu)

}  // namespace ridge
