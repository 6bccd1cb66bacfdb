#include <vector>

#include "kernels/rows16/rows16.h"
#include "ops/linear/linear.h"

namespace ridge {

void linear_reference(const LinearArgs& a) {
  const int64_t tokens = a.y.dim(0), out = a.y.dim(1), in = a.x.dim(1);
  std::vector<float> row(static_cast<size_t>(a.w.layout != nullptr ? in : 0));
  for (int64_t o = 0; o < out; ++o) {
    // Packed weights come here only when x has strides that no kernel takes.
    if (a.w.layout != nullptr) rows16::decode_row(a.w.dtype, a.w.data, in, o, row.data());
    for (int64_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (int64_t k = 0; k < in; ++k) {
        const double w = a.w.layout != nullptr ? double{row[static_cast<size_t>(k)]} : a.w.f64(o, k);
        sum += a.x.f64(t, k) * (a.x_scale ? a.x_scale.f64(t, k / 32) : 1) * w;
      }
      if (a.bias) sum += a.bias.f64(o);
      if (a.residual) sum += a.residual.f64(t, o);
      a.y.set(sum, t, o);
    }
  }
}

}  // namespace ridge
