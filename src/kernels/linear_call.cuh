#pragma once
// What every dense linear kernel of the GPU is given: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ + bias +
// residual.

#include <cstdint>

#include "device/launch.cuh"

namespace ridge::cuda {

template <class T>
struct LinearCall {
  device::Fresh<T> y;               // [tokens, out]
  device::Fresh<const T> x;         // [tokens, in]
  const T* w = nullptr;             // [out, in]; complete before the step, so it is read before the wait
  const T* bias = nullptr;          // [out] or none
  device::Fresh<const T> residual;  // [tokens, out] or none
  int64_t tokens = 0, out = 0, in = 0;
  int64_t y_stride = 0, x_stride = 0, w_stride = 0, residual_stride = 0;  // elements between rows
};

}  // namespace ridge::cuda
