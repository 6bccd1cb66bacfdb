#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct LinearArgs {
  Tensor y;        // out [tokens, out] f32
  Tensor x;        // in  [tokens, in] f32, bf16; i8 codes of quantize_rows (then w is block-quantized)
  Tensor x_scale;  // in  [tokens, blocks] f32, for i8 x alone: of 32 columns each
  Tensor w;        // in  [out, in] f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q4_k, q6_k; rows16 (packed_layout)
  Tensor bias;     // in  [out] f32; may be absent
  Tensor residual;  // in  [tokens, out] f32; may be absent, may be y
};
/// y[t, o] = sum_k x[t, k] w[o, k] + bias[o] + residual[t, o].
/// f32 x: weights are decoded in registers and products are summed in f32. bf16 x: the same with x widened;
/// with bf16 weights and AVX-512, pairs of products by the processor's bf16 instruction. i8 x: products of
/// codes are summed exactly over 32 columns, scaled, and summed in f32. A row's result depends neither on the
/// other rows of the batch nor on the number of threads. No copy of the weights is made. Errors:
/// kInvalidArgument, naming operand, value found, value wanted. Source: the block formats are GGUF's
/// (tensor/blocks.h); method: README.
Status linear(Stream& stream, const LinearArgs& args);
RIDGE_OPERATOR(LinearArgs, describe_linear)

}  // namespace ridge
