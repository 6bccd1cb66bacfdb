// Limit: the launch. Copies 16 bytes a thread where rows are aligned so, else an element. The host does not
// see the indices: one out of range gives a row of NaN and reads nothing.

#include <algorithm>

#include "device/convert.cuh"
#include "device/launch.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/gather_rows/gather_rows.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

/// Unit: what a thread copies; sizes count units.
template <class Unit, class Index>
struct GatherCall {
  device::Fresh<Unit> y;             // [n, columns]
  device::Fresh<const Unit> x;       // [rows, columns]
  device::Fresh<const Index> index;  // [n]
  int64_t n = 0, columns = 0, rows = 0, y_stride = 0, x_stride = 0, index_stride = 0;
};

/// All bits set is a NaN of f32 and of bf16.
template <class Unit>
__device__ __forceinline__ Unit all_ones() {
  Unit ones;
  memset(&ones, 0xff, sizeof ones);
  return ones;
}

template <class Unit, class Index>
__global__ __launch_bounds__(256) void gather_rows_units(device::Upstream upstream,
                                                         GatherCall<Unit, Index> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t all = call.n * call.columns, step = int64_t{gridDim.x} * 256;
  for (int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x; i < all; i += step) {
    const int64_t to = i / call.columns, column = i % call.columns;
    const int64_t row = call.index.after(waited)[to * call.index_stride];
    const bool good = row >= 0 && row < call.rows;
    call.y.after(waited)[to * call.y_stride + column] =
        good ? call.x.after(waited)[row * call.x_stride + column] : all_ones<Unit>();
  }
}

Decline declines(const GatherRowsArgs& a) {
  return dense_rows({{"y", &a.y}, {"x", &a.x}});
}

template <class Unit, class Index>
Status launch_units(Stream& stream, const GatherRowsArgs& a, int64_t per_unit) {
  GatherCall<Unit, Index> call;
  call.y = a.y.as<Unit>(), call.x = a.x.as<const Unit>(), call.index = a.index.as<const Index>();
  call.n = a.y.dim(0), call.columns = a.y.dim(1) / per_unit, call.rows = a.x.dim(0);
  call.y_stride = a.y.stride(0) / per_unit, call.x_stride = a.x.stride(0) / per_unit;
  call.index_stride = a.index.stride(0);
  device::LaunchShape shape;
  shape.block.x = 256;
  shape.grid.x = static_cast<unsigned>(std::min((call.n * call.columns + 255) / 256, int64_t{8192}));
  return device::launch_dependent(as_cuda(stream).native(), shape, "gather_rows_units",
                                  gather_rows_units<Unit, Index>, call);
}

Status run(Stream& stream, const GatherRowsArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<float, bf16>(a.y, [&]<class T>(T) {
    return with_dtype<int32_t, int64_t>(a.index, [&]<class Index>(Index) {
      constexpr int64_t kPerVector = device::kVector<T>;
      if (rows_aligned(a.y) && rows_aligned(a.x) && a.y.dim(1) % kPerVector == 0 &&
          a.y.stride(0) % kPerVector == 0 && a.x.stride(0) % kPerVector == 0)
        return launch_units<uint4, Index>(stream, a, kPerVector);
      return launch_units<T, Index>(stream, a, 1);
    });
  });
}

}  // namespace

void gather_rows_cuda(Kernels<GatherRowsArgs>& kernels) {
  kernels.add("gather_rows_units", declines, run);
}

}  // namespace ridge::cuda
