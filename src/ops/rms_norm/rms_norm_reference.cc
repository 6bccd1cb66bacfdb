#include <cmath>

#include "ops/rms_norm/rms_norm.h"

namespace ridge {

void rms_norm_reference(const RmsNormArgs& a) {
  const int64_t rows = a.x.dim(0), hidden = a.x.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t h = 0; h < hidden; ++h) squares += a.x.f64(r, h) * a.x.f64(r, h);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + a.epsilon);
    for (int64_t h = 0; h < hidden; ++h)
      a.y.set(a.x.f64(r, h) * scale * (a.w.f64(h) + a.weight_offset), r, h);
  }
}

}  // namespace ridge
