#pragma once
// Bit layouts of block-quantized rows and their decoding in double precision, for references, tests and
// packing. Source: the GGUF specification; ggml's public definitions of these blocks.

#include <cstdint>

#include "base/dtype.h"

namespace ridge {

/// Decodes block `block` of a row of `dtype` into dtype_block(dtype) values.
void decode_block(DType dtype, const void* row, int64_t block, double* values);

/// Encodes `count` values (a multiple of the block) to nearest codes: what tests and synthetic models need,
/// not a quantizer of quality. Scales are those of the largest magnitude (or range, for types with a
/// minimum).
void encode_row(DType dtype, const float* values, int64_t count, void* row);

}  // namespace ridge
