#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct LinearQkvArgs {
  Tensor q, k, v;        // out [tokens, q_out], [tokens, k_out], [tokens, v_out] f32
  Tensor x;              // in  [tokens, in] f32, bf16
  Tensor w_q, w_k, w_v;  // in  [q_out, in], [k_out, in], [v_out, in] f16, bf16, q8_0 … q6_k, all of one type;
                         // plain as in the file, quantized in linear's packed layout
  Tensor bias_q, bias_k, bias_v;  // in [q_out], [k_out], [v_out] f32; may be absent
};
/// q = x · w_qᵀ + bias_q, and k and v likewise, sums as linear's, in one launch. Replaces linear, linear,
/// linear. Errors: kInvalidArgument, naming operand, value found, value wanted. Source: Vaswani et al. 2017,
/// §3.2.2.
Status linear_qkv(Stream& stream, const LinearQkvArgs& args);
RIDGE_OPERATOR(LinearQkvArgs, describe_linear_qkv)

}  // namespace ridge
