#include <cmath>

#include "ops/rope/rope.h"

namespace ridge {

void rope_reference(const RopeArgs& a) {
  const int64_t pairs = a.frequencies.dim(0);
  for (int64_t t = 0; t < a.x.dim(0); ++t)
    for (int64_t i = 0; i < pairs; ++i) {
      // long double: 2^31 positions times one radian still leave 33 bits behind the point.
      const long double angle =
          static_cast<long double>(a.positions.i64(t)) * static_cast<long double>(a.frequencies.f64(i));
      const auto c = static_cast<double>(std::cos(angle)) * static_cast<double>(a.magnitude);
      const auto s = static_cast<double>(std::sin(angle)) * static_cast<double>(a.magnitude);
      const int64_t first = a.interleaved ? 2 * i : i, second = a.interleaved ? 2 * i + 1 : pairs + i;
      for (int64_t h = 0; h < a.x.dim(1); ++h) {
        const double x = a.x.f64(t, h, first), y = a.x.f64(t, h, second);
        a.x.set(x * c - y * s, t, h, first);
        a.x.set(y * c + x * s, t, h, second);
      }
    }
}

}  // namespace ridge
