#include <cmath>
#include <limits>

#include "ops/kv_slots.h"
#include "ops/kv_write/kv_write.h"

namespace ridge {

namespace {

/// Row [t, head] of x into its slot.
void write_row(const Tensor& x, const Tensor& pages, const Tensor& scale, int64_t t, int64_t head,
               int64_t page, int64_t offset) {
  const int64_t head_dim = x.dim(2);
  if (pages.dtype != kI8) {
    for (int64_t i = 0; i < head_dim; ++i) pages.set(x.f64(t, head, i), page, head, offset, i);
    return;
  }
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < head_dim; ++i) {
    finite = finite && std::isfinite(x.f64(t, head, i));
    largest = std::max(largest, std::fabs(x.f64(t, head, i)));
  }
  if (!finite) {
    scale.set(std::numeric_limits<double>::quiet_NaN(), page, head, offset);
    for (int64_t i = 0; i < head_dim; ++i) pages.set(0, page, head, offset, i);
    return;
  }
  scale.set(std::max(largest / 127, static_cast<double>(std::numeric_limits<float>::min())), page, head,
            offset);
  const double divisor = scale.f64(page, head, offset);  // as stored
  for (int64_t i = 0; i < head_dim; ++i)
    pages.set(std::nearbyint(x.f64(t, head, i) / divisor), page, head, offset, i);
}

}  // namespace

void kv_write_reference(const KvWriteArgs& a) {
  for_each_slot(a.slots, a.k_pages, [&](int64_t t, int64_t page, int64_t offset) {
    for (int64_t head = 0; head < a.k.dim(1); ++head) {
      write_row(a.k, a.k_pages, a.k_scale, t, head, page, offset);
      write_row(a.v, a.v_pages, a.v_scale, t, head, page, offset);
    }
  });
}

}  // namespace ridge
