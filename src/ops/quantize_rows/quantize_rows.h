#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct QuantizeRowsArgs {
  Tensor q;      // out [tokens, padded] i8; padded = columns rounded up to 32, codes from `columns` on are 0
  Tensor scale;  // out [tokens, padded / 32] f32
  Tensor x;      // in  [tokens, columns] f32, bf16
};
/// Blocks of 32 columns to 8 bits: scale = amax / 127, q = round_to_even(x * (127 / amax)), each operation in
/// f32, amax = max |x| of the block. A block with amax below 127 * 2^-126 (zeros, subnormals) gets scale 1
/// and codes 0. A block that holds NaN or an infinity gets scale NaN and codes 0, so that what is computed
/// from it is NaN and shows. Errors: kInvalidArgument, naming operand, value found, value wanted. Source:
/// absolute-maximum quantization in blocks, as GGUF's q8_0 (there the scale is f16).
Status quantize_rows(Stream& stream, const QuantizeRowsArgs& args);
RIDGE_OPERATOR(QuantizeRowsArgs, describe_quantize_rows)

}  // namespace ridge
