#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct SiluMulArgs {
  Tensor y;     // out [rows, inner] f32, bf16; may be gate or up
  Tensor gate;  // in  [rows, inner], the dtype of y
  Tensor up;    // in  [rows, inner], the dtype of y
};
/// y = gate / (1 + e^-gate) * up. Arithmetic is f32.
/// Errors: kInvalidArgument, naming operand, value found, value wanted.
/// Source: Shazeer 2020, "GLU variants improve transformer" (SwiGLU); Elfwing et al. 2018 (SiLU).
Status silu_mul(Stream& stream, const SiluMulArgs& args);
RIDGE_OPERATOR(SiluMulArgs, describe_silu_mul)

}  // namespace ridge
