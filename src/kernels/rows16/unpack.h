#pragma once
// The way back from rows16, for what reads weights in the file's layout: references and their bounds.

#include "tensor/tensor.h"

namespace ridge::rows16 {

/// Code k of row `row` of a tile, unsigned, in the codes of a panel (rows16.h).
int packed_code(DType dtype, const uint8_t* codes, int64_t row, int64_t k);

/// Writes all rows of a packed matrix [rows, columns] in the file's layout, bit for bit what pack() was
/// given; `rows` has room for the dense tensor's bytes.
void unpack(const Tensor& packed, void* rows);

}  // namespace ridge::rows16
