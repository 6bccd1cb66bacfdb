// Limit: bandwidth; below about 100 rows the launch. kernels/rowwise.cuh.

#include "kernels/rowwise.cuh"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/cuda_operands.cuh"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

Decline declines(const AddRmsNormArgs& a) {
  return dense_rows({{"sum", &a.sum}, {"y", &a.y}, {"a", &a.a}, {"b", &a.b}, {"w", &a.w}});
}

Status run(Stream& stream, const AddRmsNormArgs& a) {
  return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
    RmsNormCall<float, Y, float> call;
    call.y = a.y.as<Y>(), call.sum = a.sum.as<float>(), call.w = a.w.as<float>();
    call.x = a.a.as<const float>(), call.addend = a.b.as<const float>();
    call.rows = a.a.dim(0), call.hidden = a.a.dim(1);
    call.y_stride = a.y.stride(0), call.sum_stride = a.sum.stride(0), call.x_stride = a.a.stride(0);
    call.addend_stride = a.b.stride(0), call.epsilon = a.epsilon, call.weight_offset = a.weight_offset;
    const bool aligned = rows_aligned(a.a) && rows_aligned(a.b) && rows_aligned(a.y) && rows_aligned(a.sum) &&
                         rows_aligned(a.w);
    return launch_rms_norm<true>(as_cuda(stream).native(), call, aligned);
  });
}

}  // namespace

void add_rms_norm_cuda(Kernels<AddRmsNormArgs>& kernels) {
  kernels.add("add_rms_norm_row", declines, run);
}

}  // namespace ridge::cuda
