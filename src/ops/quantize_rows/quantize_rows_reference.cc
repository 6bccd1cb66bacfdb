#include <cmath>
#include <limits>

#include "ops/quantize_rows/quantize_rows.h"

namespace ridge {

// In f32, because the codes are defined by f32 operations.
void quantize_rows_reference(const QuantizeRowsArgs& a) {
  for (int64_t t = 0; t < a.x.dim(0); ++t)
    for (int64_t b = 0; b < a.scale.dim(1); ++b) {
      const int64_t live = std::min<int64_t>(32, a.x.dim(1) - b * 32);
      float amax = 0;
      bool finite = true;
      for (int64_t i = 0; i < live; ++i) {
        const auto x = static_cast<float>(a.x.f64(t, b * 32 + i));
        finite &= std::isfinite(x);
        amax = std::max(amax, std::fabs(x));
      }
      const bool zero = !finite || amax < 127 * std::numeric_limits<float>::min();
      const float scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 1.0f : amax / 127.0f;
      a.scale.set(scale, t, b);
      for (int64_t i = 0; i < 32; ++i) {
        const float x = i < live && !zero ? static_cast<float>(a.x.f64(t, b * 32 + i)) : 0.0f;
        a.q.set(zero ? 0 : std::nearbyint(x * (127.0f / amax)), t, b * 32 + i);
      }
    }
}

}  // namespace ridge
