// Limit: bandwidth of the level where a and b were just written; below about 100 rows the launch. A thread
// has 8 neighbouring elements where rows are aligned, else one.

#include <algorithm>

#include "device/convert.cuh"
#include "device/launch.cuh"
#include "ops/add/add.h"
#include "ops/cuda_operands.cuh"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

template <class T>
struct AddCall {
  device::Fresh<T> y;           // [rows, columns]; may be a or b
  device::Fresh<const T> a, b;  // [rows, columns]
  int64_t rows = 0, columns = 0, y_stride = 0, a_stride = 0, b_stride = 0;
};

/// kGroup: 8, for aligned rows of whole groups, or 1.
template <int kGroup, class T>
__global__ __launch_bounds__(256) void add_groups(device::Upstream upstream, AddCall<T> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t groups = call.columns / kGroup, all = call.rows * groups, step = int64_t{gridDim.x} * 256;
  for (int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x; i < all; i += step) {
    const int64_t row = i / groups, at = i % groups * kGroup;
    const T* const a = call.a.after(waited) + row * call.a_stride + at;
    const T* const b = call.b.after(waited) + row * call.b_stride + at;
    T* const y = call.y.after(waited) + row * call.y_stride + at;
    if constexpr (kGroup == 1) {
      *y = device::from_float<T>(device::to_float(*a) + device::to_float(*b));
    } else {
      float sum[8], other[8];
      device::load8(a, sum), device::load8(b, other);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += other[j];
      device::store8(y, sum);
    }
  }
}

Decline declines(const AddArgs& a) {
  return dense_rows({{"y", &a.y}, {"a", &a.a}, {"b", &a.b}});
}

Status run(Stream& stream, const AddArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<float, bf16>(a.y, [&]<class T>(T) {
    AddCall<T> call;
    call.y = a.y.as<T>(), call.a = a.a.as<const T>(), call.b = a.b.as<const T>();
    call.rows = a.y.dim(0), call.columns = a.y.dim(1);
    call.y_stride = a.y.stride(0), call.a_stride = a.a.stride(0), call.b_stride = a.b.stride(0);
    const bool groups = rows_aligned(a.y) && rows_aligned(a.a) && rows_aligned(a.b) && call.columns % 8 == 0;
    device::LaunchShape shape;
    shape.block.x = 256;
    const int64_t threads = a.y.elements() / (groups ? 8 : 1);
    shape.grid.x = static_cast<unsigned>(std::min((threads + 255) / 256, int64_t{8192}));
    if (groups)
      return device::launch_dependent(as_cuda(stream).native(), shape, "add_groups", add_groups<8, T>, call);
    return device::launch_dependent(as_cuda(stream).native(), shape, "add_groups", add_groups<1, T>, call);
  });
}

}  // namespace

void add_cuda(Kernels<AddArgs>& kernels) {
  kernels.add("add_groups", declines, run);
}

}  // namespace ridge::cuda
