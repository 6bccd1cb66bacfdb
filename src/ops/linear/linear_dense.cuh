#pragma once
// What the kernels of plain weights share: the call, and what none of them takes.

#include "kernels/linear_call.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/linear/linear.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

template <class W, class X>
LinearCall<W, X, float> dense_call(const LinearArgs& a) {
  LinearCall<W, X, float> call;
  call.y = a.y.as<float>(), call.x = a.x.as<const X>(), call.w = a.w.as<W>();
  if (a.bias) call.bias = a.bias.as<float>();
  if (a.residual) call.residual = a.residual.as<const float>(), call.residual_stride = a.residual.stride(0);
  call.tokens = a.x.dim(0), call.out = a.w.dim(0), call.in = a.w.dim(1);
  call.y_stride = a.y.stride(0), call.x_stride = a.x.stride(0), call.w_stride = a.w.stride(0);
  return call;
}

inline Decline declines_plain(const LinearArgs& a) {
  if (a.w.layout) return decline("w is packed for the CPU: keep the file's layout");
  if (is_block_quantized(a.w.dtype) || a.x.dtype == kI8)
    return decline("w is ", dtype_name(a.w.dtype), " with x ", dtype_name(a.x.dtype),
                   ": this kernel takes f32, f16 and bf16");
  return dense_rows({{"y", &a.y}, {"x", &a.x}, {"w", &a.w}, {"bias", &a.bias}, {"residual", &a.residual}});
}

}  // namespace ridge::cuda
