// Limit: read bandwidth; a block is read once and its 32 values stay in registers.

#include <limits>

#include "ops/quantize_rows/quantize_rows.h"
#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

using simd::F32;

/// `live` (up to 32) values, the rest taken as 0.
template <class X>
void quantize_block(const X* x, int live, int8_t* q, float* scale) {
  const F32 low = live >= 16 ? simd::load(x) : simd::load(x, live);
  const F32 high = live == 32 ? simd::load(x + 16) : live > 16 ? simd::load(x + 16, live - 16) : simd::zero();
  const float amax = simd::max_of(simd::max(simd::abs(low), simd::abs(high)));
  // x - x is 0 for finite x alone; the vector maximum may drop a NaN.
  const bool finite = simd::sum((low - low) + (high - high)) == 0.0f;
  const bool zero = !finite || amax < 127 * std::numeric_limits<float>::min();
  *scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 1.0f : amax / 127.0f;
  const F32 inverse = simd::set1(127.0f / amax);
  simd::store(q, zero ? simd::zero_i32() : simd::round_to_i32(low * inverse));
  simd::store(q + 16, zero ? simd::zero_i32() : simd::round_to_i32(high * inverse));
}

Decline dense_rows(const QuantizeRowsArgs& a) {
  for (const Tensor* t : {&a.q, &a.scale, &a.x})
    if (!t->rows_are_dense()) return decline("a row has strides ", t->stride(1), ", needs 1: copy it");
  return {};
}

Status run(Stream& stream, const QuantizeRowsArgs& a) {
  return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
    const int64_t columns = a.x.dim(1), blocks = a.scale.dim(1);
    // Compute weighs as much as moving four times the bytes.
    return as_cpu(stream).for_each(a.x.dim(0) * blocks, 4 * 32 * sizeof(X), [&](int64_t i) {
      const int64_t t = i / blocks, b = i % blocks;
      quantize_block(a.x.row<X>(t) + b * 32, static_cast<int>(std::min<int64_t>(32, columns - b * 32)),
                     a.q.row<int8_t>(t) + b * 32, a.scale.row<float>(t) + b);
    });
  });
}

}  // namespace

void quantize_rows_cpu(Kernels<QuantizeRowsArgs>& kernels) {
  kernels.add("quantize_rows_by_block", dense_rows, run);
}

}  // namespace ridge::RIDGE_ISA
