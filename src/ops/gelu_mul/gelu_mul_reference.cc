#include <cmath>

#include "ops/gelu_mul/gelu_mul.h"

namespace ridge {

void gelu_mul_reference(const GeluMulArgs& a) {
  for (int64_t r = 0; r < a.y.dim(0); ++r)
    for (int64_t i = 0; i < a.y.dim(1); ++i) {
      const double g = a.gate.f64(r, i);
      a.y.set(0.5 * g * (1 + std::tanh(0.7978845608028654 * (g + 0.044715 * g * g * g))) * a.up.f64(r, i), r,
              i);
    }
}

}  // namespace ridge
