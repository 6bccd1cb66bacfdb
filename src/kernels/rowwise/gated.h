#pragma once
// y = activation(gate) * up, element by element: silu_mul and gelu_mul are this with their functor.
// Limit: bandwidth of the level where gate and up were just written, and the exponential.

#include "base/decline.h"
#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

/// About 24 bytes' worth of time a lane group: the exponential dominates.
inline constexpr double kGatedBytesEach = 24;

template <class Args>
Decline gated_rows(const Args& a) {
  if (!a.gate.rows_are_dense()) return decline("gate has strides along inner: copy gate");
  if (!a.up.rows_are_dense()) return decline("up has strides along inner: copy up");
  if (!a.y.rows_are_dense()) return decline("y has strides along inner: make y dense");
  return {};
}

template <class Activation, class Args>
Status gated(Stream& stream, const Args& a) {
  const int64_t inner = a.y.dim(1);
  return with_dtype<float, bf16>(a.gate, [&]<class T>(T) {
    return as_cpu(stream).for_each(a.y.dim(0), kGatedBytesEach * static_cast<double>(inner), [&](int64_t r) {
      const T *gate = a.gate.template row<T>(r), *up = a.up.template row<T>(r);
      T* y = a.y.template row<T>(r);
      simd::for_each(inner, [&](int64_t i, int live) {
        simd::store(y + i, Activation()(simd::load(gate + i, live)) * simd::load(up + i, live), live);
      });
    });
  });
}

}  // namespace ridge::RIDGE_ISA
