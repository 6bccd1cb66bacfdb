#include <cmath>

#include "ops/silu_mul/silu_mul.h"

namespace ridge {

void silu_mul_reference(const SiluMulArgs& a) {
  for (int64_t r = 0; r < a.y.dim(0); ++r)
    for (int64_t i = 0; i < a.y.dim(1); ++i) {
      const double g = a.gate.f64(r, i);
      a.y.set(g / (1 + std::exp(-g)) * a.up.f64(r, i), r, i);
    }
}

}  // namespace ridge
