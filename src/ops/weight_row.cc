#include "ops/weight_row.h"

#include <cmath>

#include "kernels/rows16/rows16.h"

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
  for (int64_t k = 0; k < in; ++k) values[static_cast<size_t>(k)] = w.f64(row, k);
  return values;
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
