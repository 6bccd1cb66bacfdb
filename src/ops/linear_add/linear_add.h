#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct LinearAddArgs {
  Tensor y;         // out [tokens, out] f32
  Tensor x;         // in  [tokens, in] f32, bf16
  Tensor w;         // in  [out, in] bf16, q8_0, q4_0, q4_1, q5_0, q4_k, q6_k; linear's packed layout
  Tensor bias;      // in  [out] f32; may be absent
  Tensor residual;  // in  [tokens, out] f32; may be y
};
/// y[t, o] = sum_k x[t, k] w[o, k] + bias[o] + residual[t, o], sums as linear's: a residual connection
/// written by the linear before it. Replaces linear, add. Errors: kInvalidArgument, naming operand, value
/// found, value wanted. Source: He et al. 2015, eq. 1.
Status linear_add(Stream& stream, const LinearAddArgs& args);
RIDGE_OPERATOR(LinearAddArgs, describe_linear_add)

}  // namespace ridge
