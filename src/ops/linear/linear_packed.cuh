#pragma once
// linear_packed as a kernel of the operator, for weights of one type.

#include "kernels/linear_packed.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/linear/linear.h"
#include "runtime/cuda/cuda_device.h"

namespace ridge::cuda {

template <DType dtype>
Decline declines_packed(const LinearArgs& a) {
  constexpr int64_t kMostGrid = 65535;
  if (a.w.dtype != dtype)
    return decline("w is ", dtype_name(a.w.dtype), ", this kernel takes ", dtype_name(dtype));
  if (a.w.layout != rows16::layout(dtype))
    return decline("w is not in rows16: pack it with the operator's pack_rows");
  if (a.x.dtype == kI8) return decline("x is i8, this kernel takes f32 and bf16");
  if (reinterpret_cast<uintptr_t>(a.w.data) % 16 != 0) return decline("w is not aligned to 16 bytes");
  if (a.x.dim(0) > kMostGrid * 21)
    return decline("tokens is ", a.x.dim(0), ", needs at most ", kMostGrid * 21);
  return dense_rows({{"y", &a.y}, {"x", &a.x}, {"bias", &a.bias}, {"residual", &a.residual}});
}

/// Warps that share a pair of tiles. A matter of w's shape alone: no bit depends on the number of tokens.
inline int packed_split(int64_t out) {
  const int64_t pairs = ceil_div(out, int64_t{32});
  return pairs <= 264 ? 8 : pairs <= 528 ? 4 : pairs <= 1056 ? 2 : 1;
}

template <DType dtype>
Status run_packed(Stream& stream, const LinearArgs& a) {
  if (a.y.elements() == 0) return {};
  LinearPackedCall call;
  call.y = a.y.as<float>(), call.x = a.x.as<const unsigned char>(), call.w = a.w.as<const uint8_t>();
  if (a.bias) call.bias = a.bias.as<float>();
  if (a.residual) call.residual = a.residual.as<const float>(), call.residual_stride = a.residual.stride(0);
  call.tokens = a.x.dim(0), call.out = a.w.dim(0), call.panels = a.w.dim(1) / rows16::kPanel;
  call.tile_bytes = rows16::tile_bytes(dtype, a.w.dim(1));
  call.y_stride = a.y.stride(0), call.x_stride = a.x.stride(0);
  call.split = packed_split(call.out), call.terms = a.x.dtype == kF32 ? 3 : 1;
  call.vectors = rows_aligned(a.x);
  const int64_t columns = call.tokens * call.terms;
  const cudaStream_t native = as_cuda(stream).native();
  if (columns <= 8) return launch_linear_packed<LinearPackedTraits<dtype, 1>>(native, call);
  if (columns <= 24) return launch_linear_packed<LinearPackedTraits<dtype, 3>>(native, call);
  return launch_linear_packed<LinearPackedTraits<dtype, 8>>(native, call);
}

/// A term of a token is a column.
inline int64_t packed_flops(const LinearArgs& a) {
  return 2 * a.x.dim(0) * a.w.dim(0) * a.w.dim(1) * (a.x.dtype == kF32 ? 3 : 1);
}

template <DType dtype>
void add_linear_packed(Kernels<LinearArgs>& kernels, const char* name) {
  Kernel<LinearArgs> kernel;
  kernel.name = name, kernel.declines = declines_packed<dtype>, kernel.run = run_packed<dtype>;
  kernel.engine = Engine::kBf16, kernel.executed_flops = packed_flops;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
