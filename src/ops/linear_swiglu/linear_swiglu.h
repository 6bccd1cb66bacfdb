#pragma once

#include "ops/dispatch.h"
#include "ops/linear_gated.h"
#include "ops/operator.h"

namespace ridge {

struct LinearSwigluArgs : LinearGated {};
/// y[t, i] = silu(sum_k x[t, k] w_gate[i, k]) * (sum_k x[t, k] w_up[i, k]), sums as linear's, in one launch.
/// Activation: SiLU: silu(g) = g / (1 + e^-g).
/// Replaces linear, linear, silu_mul. Errors: kInvalidArgument, naming operand, value found, value wanted.
/// Source: Shazeer 2020, "GLU variants improve transformer" (SwiGLU).
Status linear_swiglu(Stream& stream, const LinearSwigluArgs& args);
RIDGE_OPERATOR(LinearSwigluArgs, describe_linear_swiglu)

}  // namespace ridge
