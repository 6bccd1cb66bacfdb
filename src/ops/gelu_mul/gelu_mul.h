#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct GeluMulArgs {
  Tensor y;     // out [rows, inner] f32, bf16; may be gate or up
  Tensor gate;  // in  [rows, inner], the dtype of y
  Tensor up;    // in  [rows, inner], the dtype of y
};
/// y = gelu(gate) * up with the tanh form: gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
/// Arithmetic is f32. Errors: kInvalidArgument, naming operand, value found, value wanted. Source: Hendrycks
/// and Gimpel 2016, "Gaussian error linear units", §2; Shazeer 2020 (GEGLU).
Status gelu_mul(Stream& stream, const GeluMulArgs& args);
RIDGE_OPERATOR(GeluMulArgs, describe_gelu_mul)

}  // namespace ridge
