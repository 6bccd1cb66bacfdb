// Limit: bandwidth; below about 100 rows the launch. kernels/rowwise.cuh.

#include "kernels/rowwise.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/rms_norm/rms_norm.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

Decline declines(const RmsNormArgs& a) {
  return dense_rows({{"y", &a.y}, {"x", &a.x}, {"w", &a.w}});
}

Status run(Stream& stream, const RmsNormArgs& a) {
  return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
    return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
      RmsNormCall<X, Y, float> call;
      call.y = a.y.as<Y>(), call.x = a.x.as<const X>(), call.w = a.w.as<float>();
      call.rows = a.x.dim(0), call.hidden = a.x.dim(1), call.y_stride = a.y.stride(0),
      call.x_stride = a.x.stride(0);
      call.epsilon = a.epsilon, call.weight_offset = a.weight_offset;
      const bool aligned = rows_aligned(a.x) && rows_aligned(a.y) && rows_aligned(a.w);
      return launch_rms_norm<false>(as_cuda(stream).native(), call, aligned);
    });
  });
}

}  // namespace

void rms_norm_cuda(Kernels<RmsNormArgs>& kernels) {
  kernels.add("rms_norm_row", declines, run);
}

}  // namespace ridge::cuda
