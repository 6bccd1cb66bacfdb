#pragma once
// Symbolic dims of a description bound to the real shapes of a call.

#include "ops/operator.h"

namespace ridge {

/// "tokens hidden" -> its words; digits stay words.
std::vector<std::string> dim_words(const char* dims);
/// The shape that they name.
Shape shape_of(const char* dims, const Dims& values);

struct SplitBytes {
  int64_t codes = 0, scales = 0;
};
/// Bytes of `elements` elements of `t`, scales and minima of quantized types apart.
SplitBytes split_bytes(const Tensor& t, int64_t elements);

/// One operand against the dims bound so far: rank, literal sizes, symbols. Names operand, value found, value
/// wanted.
Status bind_operand(const char* op, const char* operand, const Tensor& t, const char* dims, Dims* bound);
/// A scalar argument that has to be an integer from `least` to `most`.
Status check_param(const char* op, std::string_view name, double value, double least, double most);
Status bad_dtype(const char* op, const char* operand, DType found, const std::vector<DType>& wanted);

}  // namespace ridge
