#include "ops/linear_gated.h"

#include <vector>

#include "ops/weight_row.h"

namespace ridge {

namespace {

struct GatedProduct {
  double sum = 0, magnitude = 0;
};
GatedProduct gated_product(const Tensor& x, int64_t token, const std::vector<double>& w) {
  GatedProduct p;
  for (size_t k = 0; k < w.size(); ++k) {
    const double term = x.f64(token, static_cast<int64_t>(k)) * w[k];
    p.sum += term, p.magnitude += std::fabs(term);
  }
  return p;
}

}  // namespace

void linear_gated_reference(const LinearGated& a, double (*activation)(double)) {
  for (int64_t i = 0; i < a.y.dim(1); ++i) {
    const std::vector<double> gate = weight_row(a.w_gate, i), up = weight_row(a.w_up, i);
    for (int64_t t = 0; t < a.y.dim(0); ++t)
      a.y.set(activation(gated_product(a.x, t, gate).sum) * gated_product(a.x, t, up).sum, t, i);
  }
}

double gated_bound(const GatedProducts& p, double unit, double y, double slope) {
  const double gate_error = unit * p.gate_magnitude, up_error = unit * p.up_magnitude;
  // |activation(g)| <= |g|; the activation itself is off by 10 + 4 |s| u of the result, |s| <= 1.6 |g| + 0.08
  // |g|^3.
  const double g = std::fabs(p.gate);
  return slope * gate_error * (std::fabs(p.up) + up_error) + (g + gate_error) * up_error +
         (12 + 4 * (1.6 * g + 0.08 * g * g * g)) * 0x1p-24 * std::fabs(y);
}

double linear_gated_bound(const LinearGated& a, double y, int64_t t, int64_t i, double slope) {
  const GatedProduct gate = gated_product(a.x, t, weight_row(a.w_gate, i)),
                     up = gated_product(a.x, t, weight_row(a.w_up, i));
  const double unit =
      (static_cast<double>(a.x.dim(1)) + 4) * 0x1p-24;  // linear's, with a rounding of the weight
  return gated_bound({gate.sum, up.sum, gate.magnitude, up.magnitude}, unit, y, slope);
}

}  // namespace ridge
