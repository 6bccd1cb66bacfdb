// Limit: bandwidth; below about 100 rows the launch. kernels/rowwise.cuh.

#include "kernels/rowwise.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/gelu_mul/gelu_mul.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

Decline declines(const GeluMulArgs& a) {
  return dense_rows({{"y", &a.y}, {"gate", &a.gate}, {"up", &a.up}});
}

Status run(Stream& stream, const GeluMulArgs& a) {
  return with_dtype<float, bf16>(a.y, [&]<class T>(T) {
    GluCall<T> call;
    call.y = a.y.as<T>(), call.gate = a.gate.as<const T>(), call.up = a.up.as<const T>();
    call.rows = a.y.dim(0), call.inner = a.y.dim(1);
    call.y_stride = a.y.stride(0), call.gate_stride = a.gate.stride(0), call.up_stride = a.up.stride(0);
    const bool aligned = rows_aligned(a.y) && rows_aligned(a.gate) && rows_aligned(a.up);
    return launch_glu<GeluTanh>(as_cuda(stream).native(), call, aligned);
  });
}

}  // namespace

void gelu_mul_cuda(Kernels<GeluMulArgs>& kernels) {
  kernels.add("gelu_mul_groups", declines, run);
}

}  // namespace ridge::cuda
