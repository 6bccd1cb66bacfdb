#include "ops/linear_gated.h"

#include <vector>

#include "kernels/rows16/rows16.h"

namespace ridge {

namespace {

/// Row `row` of w in double.
std::vector<double> row_of(const Tensor& w, int64_t row) {
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

struct Product {
  double sum = 0, magnitude = 0;
};
Product product(const Tensor& x, int64_t token, const std::vector<double>& w) {
  Product p;
  for (size_t k = 0; k < w.size(); ++k) {
    const double term = x.f64(token, static_cast<int64_t>(k)) * w[k];
    p.sum += term, p.magnitude += std::fabs(term);
  }
  return p;
}

}  // namespace

void linear_gated_reference(const LinearGated& a, double (*activation)(double)) {
  for (int64_t i = 0; i < a.y.dim(1); ++i) {
    const std::vector<double> gate = row_of(a.w_gate, i), up = row_of(a.w_up, i);
    for (int64_t t = 0; t < a.y.dim(0); ++t)
      a.y.set(activation(product(a.x, t, gate).sum) * product(a.x, t, up).sum, t, i);
  }
}

double linear_gated_bound(const LinearGated& a, double y, int64_t t, int64_t i, double slope) {
  const Product gate = product(a.x, t, row_of(a.w_gate, i)), up = product(a.x, t, row_of(a.w_up, i));
  const double unit =
      (static_cast<double>(a.x.dim(1)) + 4) * 0x1p-24;  // linear's, with a rounding of the weight
  const double gate_error = unit * gate.magnitude, up_error = unit * up.magnitude;
  // |activation(g)| <= |g|; the activation itself is off by 10 + 4 |s| u of the result, |s| <= 1.6 |g| + 0.08
  // |g|^3.
  const double g = std::fabs(gate.sum);
  return slope * gate_error * (std::fabs(up.sum) + up_error) + (g + gate_error) * up_error +
         (12 + 4 * (1.6 * g + 0.08 * g * g * g)) * 0x1p-24 * std::fabs(y);
}

}  // namespace ridge
