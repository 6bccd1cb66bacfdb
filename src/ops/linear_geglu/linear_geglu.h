#pragma once

#include "ops/dispatch.h"
#include "ops/linear_gated.h"
#include "ops/operator.h"

namespace ridge {

struct LinearGegluArgs : LinearGated {};
/// y[t, i] = gelu(sum_k x[t, k] w_gate[i, k]) * (sum_k x[t, k] w_up[i, k]), sums as linear's, in one launch.
/// Activation: tanh form of GELU: gelu_mul.h.
/// Replaces linear, linear, gelu_mul. Errors: kInvalidArgument, naming operand, value found, value wanted.
/// Source: Hendrycks and Gimpel 2016, §2; Shazeer 2020, "GLU variants improve transformer" (GEGLU).
Status linear_geglu(Stream& stream, const LinearGegluArgs& args);
RIDGE_OPERATOR(LinearGegluArgs, describe_linear_geglu)

}  // namespace ridge
