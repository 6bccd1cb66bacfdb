// Limit: bandwidth; below about 100 rows the launch. A thread 8 elements, or one where rows are not aligned.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/launch.cuh"
#include "ops/cast/cast.h"
#include "ops/cuda_operands.cuh"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

template <class Y, class X>
struct CastCall {
  device::Fresh<Y> y;        // [rows, columns]
  device::Fresh<const X> x;  // [rows, columns]
  int64_t rows = 0, columns = 0, y_stride = 0, x_stride = 0;
};

template <int kEach, class Y, class X>
__global__ __launch_bounds__(128) void cast_groups(device::Upstream upstream, CastCall<Y, X> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t across = call.columns / kEach, all = call.rows * across;
  for (int64_t i = int64_t{blockIdx.x} * 128 + threadIdx.x; i < all; i += int64_t{gridDim.x} * 128) {
    const int64_t row = i / across, column = i % across * kEach;
    const X* const x = call.x.after(waited) + row * call.x_stride + column;
    Y* const y = call.y.after(waited) + row * call.y_stride + column;
    if constexpr (kEach == 8) {
      float values[8];
      device::load8(x, values);
      device::store8(y, values);
    } else {
      *y = device::from_float<Y>(device::to_float(*x));
    }
  }
}

Decline declines(const CastArgs& a) {
  return dense_rows({{"y", &a.y}, {"x", &a.x}});
}

Status run(Stream& stream, const CastArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
    return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
      CastCall<Y, X> call;
      call.y = a.y.as<Y>(), call.x = a.x.as<const X>();
      call.rows = a.y.dim(0), call.columns = a.y.dim(1);
      call.y_stride = a.y.stride(0), call.x_stride = a.x.stride(0);
      const bool groups = call.columns % 8 == 0 && rows_aligned(a.x) && rows_aligned(a.y);
      const int64_t items = call.rows * call.columns / (groups ? 8 : 1);
      device::LaunchShape shape;
      shape.block.x = 128;
      shape.grid.x = static_cast<unsigned>(std::min(ceil_div(items, int64_t{128}), int64_t{8192}));
      const cudaStream_t native = as_cuda(stream).native();
      if (groups) return device::launch_dependent(native, shape, "cast_groups", cast_groups<8, Y, X>, call);
      return device::launch_dependent(native, shape, "cast_groups", cast_groups<1, Y, X>, call);
    });
  });
}

}  // namespace

void cast_cuda(Kernels<CastArgs>& kernels) {
  kernels.add("cast_groups", declines, run);
}

}  // namespace ridge::cuda
