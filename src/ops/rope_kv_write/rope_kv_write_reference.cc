#include <cmath>
#include <vector>

#include "ops/kv_slots.h"
#include "ops/rope_kv_write/rope_kv_write.h"

namespace ridge {

namespace {

/// Element d of head h of token t of x, rotated.
double rotated(const RopeKvWriteArgs& a, const Tensor& x, int64_t t, int64_t h, int64_t d) {
  const int64_t pairs = a.frequencies.dim(0);
  if (d >= 2 * pairs) return x.f64(t, h, d);
  const int64_t pair = a.interleaved ? d / 2 : d % pairs;
  const bool second = a.interleaved ? d % 2 == 1 : d >= pairs;
  const int64_t partner = a.interleaved ? d ^ 1 : second ? d - pairs : d + pairs;
  // long double: 2^31 positions times one radian still leave 33 bits behind the point.
  const long double angle =
      static_cast<long double>(a.positions.i64(t)) * static_cast<long double>(a.frequencies.f64(pair));
  const auto sine = static_cast<double>(std::sin(angle)), cosine = static_cast<double>(std::cos(angle));
  return static_cast<double>(a.magnitude) *
         (x.f64(t, h, d) * cosine + x.f64(t, h, partner) * (second ? sine : -sine));
}

}  // namespace

void rope_kv_write_reference(const RopeKvWriteArgs& a) {
  const int64_t head_dim = a.q.dim(2);
  for_each_slot(a.slots, a.k_pages, [&](int64_t t, int64_t page, int64_t offset) {
    for (int64_t h = 0; h < a.k.dim(1); ++h)
      for (int64_t d = 0; d < head_dim; ++d) {
        a.k_pages.set(rotated(a, a.k, t, h, d), page, h, offset, d);
        a.v_pages.set(a.v.f64(t, h, d), page, h, offset, d);
      }
  });
  std::vector<double> row(static_cast<size_t>(head_dim));
  for (int64_t t = 0; t < a.q.dim(0); ++t)
    for (int64_t h = 0; h < a.q.dim(1); ++h) {
      for (int64_t d = 0; d < head_dim; ++d) row[static_cast<size_t>(d)] = rotated(a, a.q, t, h, d);
      for (int64_t d = 0; d < head_dim; ++d) a.q.set(row[static_cast<size_t>(d)], t, h, d);
    }
}

}  // namespace ridge
