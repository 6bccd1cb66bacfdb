#include <vector>

#include "base/stop.h"
#include "ops/linear/linear.h"
#include "ops/weight_row.h"

namespace ridge {

void linear_reference(const LinearArgs& a) {
  const int64_t tokens = a.y.dim(0), out = a.y.dim(1), in = a.x.dim(1);
  std::vector<double> x;  // [tokens, in]
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t k = 0; k < in; ++k) x.push_back(a.x.f64(t, k) * (a.x_scale ? a.x_scale.f64(t, k / 32) : 1));
  for (int64_t o = 0; o < out && !stop_requested(); ++o) {
    // Packed weights come here only when x has strides that no kernel takes.
    const std::vector<double> w = weight_row(a.w, o);
    for (int64_t t = 0; t < tokens; ++t) {
      double sum = dot(x.data() + t * in, w.data(), w.size());
      if (a.bias) sum += a.bias.f64(o);
      if (a.residual) sum += a.residual.f64(t, o);
      a.y.set(sum, t, o);
    }
  }
}

}  // namespace ridge
