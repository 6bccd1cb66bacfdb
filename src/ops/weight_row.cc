#include "ops/weight_row.h"

#include <cmath>

#include "kernels/rows16/rows16.h"
#include "tensor/blocks.h"

namespace ridge {

std::vector<double> weight_row(const Tensor& w, int64_t row) {
  const int64_t in = w.dim(1);
  std::vector<double> values(static_cast<size_t>(in));
  if (w.layout != nullptr) {
    std::vector<float> decoded(values.size());
    rows16::decode_row(w.dtype, w.data, in, row, decoded.data());
    values.assign(decoded.begin(), decoded.end());
    return values;
  }
  if (is_block_quantized(w.dtype)) {
    const int64_t block = dtype_block(w.dtype), first = row * (in / block);
    for (int64_t b = 0; b < in / block; ++b)
      decode_block(w.dtype, w.data, first + b, values.data() + b * block);
    return values;
  }
  for (int64_t k = 0; k < in; ++k) values[static_cast<size_t>(k)] = w.f64(row, k);
  return values;
}

double dot(const double* a, const double* b, size_t count) {
  double sums[8] = {};  // a chain of additions would take the time of each
  size_t k = 0;
  for (; k + 8 <= count; k += 8)
    for (size_t i = 0; i < 8; ++i) sums[i] += a[k + i] * b[k + i];
  for (; k < count; ++k) sums[0] += a[k] * b[k];
  double sum = 0;
  for (const double s : sums) sum += s;
  return sum;
}

std::vector<double> normalized_row(const Tensor& x, int64_t token, const Tensor& w, double epsilon,
                                   double weight_offset) {
  std::vector<double> values(static_cast<size_t>(x.dim(1)));
  double squares = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = x.f64(token, static_cast<int64_t>(k));
    squares += values[k] * values[k];
  }
  const double scale = 1 / std::sqrt(squares / static_cast<double>(values.size()) + epsilon);
  for (size_t k = 0; k < values.size(); ++k)
    values[k] *= scale * (w.f64(static_cast<int64_t>(k)) + weight_offset);
  return values;
}

}  // namespace ridge
