#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct NormLinearQkvArgs {
  Tensor q, k, v;        // out [tokens, q_out], [tokens, k_out], [tokens, v_out] f32
  Tensor x;              // in  [tokens, in] f32
  Tensor norm;           // in  [in] f32
  Tensor w_q, w_k, w_v;  // in  [q_out, in], [k_out, in], [v_out, in] f16, bf16, q8_0 … q6_k, all of one type;
                         // plain as in the file, quantized in linear's packed layout
  Tensor bias_q, bias_k, bias_v;  // in [q_out], [k_out], [v_out] f32; may be absent
  float epsilon = 1e-5f;
  float weight_offset = 0.0f;
};
/// n = rms_norm(x, norm); q = n · w_qᵀ + bias_q, and k and v likewise: n never reaches memory. Replaces
/// rms_norm, linear_qkv; formulas, errors and sources are theirs.
Status norm_linear_qkv(Stream& stream, const NormLinearQkvArgs& args);
RIDGE_OPERATOR(NormLinearQkvArgs, describe_norm_linear_qkv)

}  // namespace ridge
