// Limit: bandwidth of the level where x was just written.

#include "ops/cast/cast.h"
#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

Decline declines(const CastArgs& a) {
  if (!a.y.rows_are_dense()) return decline("y has strides along columns: make y dense");
  if (!a.x.rows_are_dense()) return decline("x has strides along columns: copy x");
  return {};
}

Status run(Stream& stream, const CastArgs& a) {
  const int64_t columns = a.y.dim(1);
  return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
    return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
      return as_cpu(stream).for_each(a.y.dim(0), 6.0 * static_cast<double>(columns), [&](int64_t r) {
        const X* x = a.x.template row<X>(r);
        Y* y = a.y.template row<Y>(r);
        simd::for_each(columns,
                       [&](int64_t c, int live) { simd::store(y + c, simd::load(x + c, live), live); });
      });
    });
  });
}

}  // namespace

void cast_cpu(Kernels<CastArgs>& kernels) {
  kernels.add("cast_rows", declines, run);
}

}  // namespace ridge::RIDGE_ISA
