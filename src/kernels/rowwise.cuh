#pragma once
// Row-wise operators of the GPU: rms_norm, add + rms_norm, silu_mul / gelu_mul. Limit: bandwidth, and below
// about 100 rows the launch. Vectors of 16 bytes (8 elements of 16 bits, 4 of 32); every value is loaded once
// and kept in registers between the two uses. Rows that are not whole aligned vectors take the element
// kernels at the end.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/launch.cuh"
#include "device/reduce.cuh"

namespace ridge::cuda {

/// y = norm(x) · (w + offset); with `addend`: sum = x + addend first, rounded to X, and y of that.
template <class X, class Y, class W>
struct RmsNormCall {
  device::Fresh<Y> y;             // [rows, hidden]
  device::Fresh<X> sum;           // [rows, hidden]; only with addend; may be x or addend
  device::Fresh<const X> x;       // [rows, hidden]
  device::Fresh<const X> addend;  // [rows, hidden] or none
  const W* w = nullptr;           // [hidden]; read before the wait
  int64_t rows = 0, hidden = 0;
  int64_t y_stride = 0, sum_stride = 0, x_stride = 0, addend_stride = 0;  // elements
  float epsilon = 0, weight_offset = 0;
};

/// A block a row; a thread has up to kGroups groups of 8 neighbouring elements, kThreads groups apart. hidden
/// is a multiple of 8 and at most 8 kThreads kGroups.
template <int kThreads, int kGroups, bool kAdd, class X, class Y, class W>
__global__ __launch_bounds__(kThreads) void rms_norm_row(device::Upstream upstream,
                                                         RmsNormCall<X, Y, W> call) {
  __shared__ float scratch[32];
  float w[kGroups][8], v[kGroups][8], a[kAdd ? kGroups : 1][8];
  const int64_t row = blockIdx.x;
  const auto place = [&](int i) { return (int64_t{i} * kThreads + threadIdx.x) * 8; };
#pragma unroll
  for (int i = 0; i < kGroups; ++i)
    if (place(i) < call.hidden) device::load8(call.w + place(i), w[i]);
  upstream.release_next();
  const auto waited = upstream.wait();
  const X* const x = call.x.after(waited) + row * call.x_stride;
  const X* const addend = call.addend.after(waited) + row * call.addend_stride;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    if (place(i) >= call.hidden) continue;
    device::load8(x + place(i), v[i]);
    if constexpr (kAdd) device::load8(addend + place(i), a[i]);
  }
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    if (place(i) >= call.hidden) continue;
    if constexpr (kAdd) {
#pragma unroll
      for (int j = 0; j < 8; ++j) v[i][j] = device::to_float(device::from_float<X>(v[i][j] + a[i][j]));
      device::store8(call.sum.after(waited) + row * call.sum_stride + place(i), v[i]);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) squares = fmaf(v[i][j], v[i][j], squares);
  }
  squares = device::block_reduce<device::Sum>(squares, scratch);
  const float scale = rsqrtf(squares / static_cast<float>(call.hidden) + call.epsilon);
  Y* const y = call.y.after(waited) + row * call.y_stride;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    if (place(i) >= call.hidden) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) v[i][j] = v[i][j] * scale * (w[i][j] + call.weight_offset);
    device::store8(y + place(i), v[i]);
  }
}

/// Any hidden, any alignment: an element at a time, the row read twice.
template <bool kAdd, class X, class Y, class W>
__global__ __launch_bounds__(256) void rms_norm_elements(device::Upstream upstream,
                                                         RmsNormCall<X, Y, W> call) {
  __shared__ float scratch[32];
  upstream.release_next();
  const auto waited = upstream.wait();
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const X* x = call.x.after(waited) + row * call.x_stride;
    float squares = 0;
    for (int64_t h = threadIdx.x; h < call.hidden; h += 256) {
      float v = device::to_float(x[h]);
      if constexpr (kAdd) {
        const X sum = device::from_float<X>(
            v + device::to_float(call.addend.after(waited)[row * call.addend_stride + h]));
        call.sum.after(waited)[row * call.sum_stride + h] = sum;
        v = device::to_float(sum);
      }
      squares = fmaf(v, v, squares);
    }
    if constexpr (kAdd) x = call.sum.after(waited) + row * call.sum_stride;
    squares = device::block_reduce<device::Sum>(squares, scratch);
    const float scale = rsqrtf(squares / static_cast<float>(call.hidden) + call.epsilon);
    for (int64_t h = threadIdx.x; h < call.hidden; h += 256)
      call.y.after(waited)[row * call.y_stride + h] = device::from_float<Y>(
          device::to_float(x[h]) * scale * (device::to_float(call.w[h]) + call.weight_offset));
    __syncthreads();  // the scratch is free again
  }
}

template <class T>
bool whole_vectors(const T* p, int64_t stride) {  // of 8 elements
  return reinterpret_cast<uintptr_t>(p) % 16 == 0 && stride * static_cast<int64_t>(sizeof(T)) % 16 == 0;
}

/// `shape_of_many`: threads of a block for many rows of up to 4096 elements (128, 256 or 512).
template <bool kAdd, class X, class Y, class W>
Status launch_rms_norm(cudaStream_t stream, const RmsNormCall<X, Y, W>& call, bool aligned,
                       int threads_of_many = kAdd ? 512 : 256) {
  if (call.rows == 0 || call.hidden == 0) return {};
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(min(call.rows, int64_t{INT32_MAX}));
  const auto go = [&]<int kThreads, int kGroups>() {
    shape.block.x = kThreads;
    return device::launch_dependent(stream, shape, "rms_norm_row",
                                    rms_norm_row<kThreads, kGroups, kAdd, X, Y, W>, call);
  };
  if (aligned && call.hidden % 8 == 0 && call.rows <= INT32_MAX) {
    const int64_t groups = call.hidden / 8;
    // Few rows: as many threads as a row has groups, for the shortest chain. Many: fewer threads with more in
    // flight.
    if (call.rows > 256 && groups <= 512 && groups > 128 && threads_of_many == 128)
      return go.template operator()<128, 4>();
    if (call.rows > 256 && groups <= 512 && groups > 128 && threads_of_many == 256)
      return go.template operator()<256, 2>();
    if (groups <= 128) return go.template operator()<128, 1>();
    if (groups <= 512) return go.template operator()<512, 1>();
    if (groups <= 1024) return go.template operator()<512, 2>();
    if (groups <= 4096) return go.template operator()<1024, 4>();
  }
  shape.block.x = 256;
  return device::launch_dependent(stream, shape, "rms_norm_elements", rms_norm_elements<kAdd, X, Y, W>, call);
}

/// y = f(gate) · up.
template <class T, class Y = T>
struct GluCall {
  device::Fresh<Y> y;               // [rows, inner]; may be gate or up, of one type
  device::Fresh<const T> gate, up;  // [rows, inner]
  int64_t rows = 0, inner = 0;
  int64_t y_stride = 0, gate_stride = 0, up_stride = 0;  // elements
};

struct Silu {
  __device__ static float of(float x) { return x / (1 + expf(-x)); }
};
/// The tanh form (Hendrycks and Gimpel 2016, eq. 3), as x · sigmoid(2 u): 1 + tanh(u) would cancel for
/// negative x.
struct GeluTanh {
  __device__ static float of(float x) {
    const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return x / (1 + expf(-2 * u));
  }
};

/// A thread takes kGroups groups of 8 elements of a row, blockDim apart.
template <class F, int kGroups, class T, class Y>
__global__ __launch_bounds__(128) void glu_groups(device::Upstream upstream, GluCall<T, Y> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t row = blockIdx.y + int64_t{blockIdx.z} * gridDim.y;
  if (row >= call.rows) return;
  const T* const gates = call.gate.after(waited) + row * call.gate_stride;
  const T* const ups = call.up.after(waited) + row * call.up_stride;
  Y* const y = call.y.after(waited) + row * call.y_stride;
  float gate[kGroups][8], up[kGroups][8];
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const int64_t h = ((int64_t{blockIdx.x} * kGroups + i) * 128 + threadIdx.x) * 8;
    if (h < call.inner) device::load8(gates + h, gate[i]), device::load8(ups + h, up[i]);
  }
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const int64_t h = ((int64_t{blockIdx.x} * kGroups + i) * 128 + threadIdx.x) * 8;
    if (h >= call.inner) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) gate[i][j] = F::of(gate[i][j]) * up[i][j];
    device::store8(y + h, gate[i]);
  }
}

template <class F, class T, class Y>
__global__ __launch_bounds__(256) void glu_elements(device::Upstream upstream, GluCall<T, Y> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t count = call.rows * call.inner;
  for (int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x; i < count; i += int64_t{gridDim.x} * 256) {
    const int64_t row = i / call.inner, h = i % call.inner;
    const float gate = device::to_float(call.gate.after(waited)[row * call.gate_stride + h]);
    const float up = device::to_float(call.up.after(waited)[row * call.up_stride + h]);
    call.y.after(waited)[row * call.y_stride + h] = device::from_float<Y>(F::of(gate) * up);
  }
}

template <class F, class T, class Y>
Status launch_glu(cudaStream_t stream, const GluCall<T, Y>& call, bool aligned) {
  if (call.rows == 0 || call.inner == 0) return {};
  device::LaunchShape shape;
  shape.block.x = 128;
  if (aligned && call.inner % 8 == 0 && call.rows < (int64_t{1} << 31)) {
    const bool many = call.rows * call.inner > int64_t{132} * 16 * 128 * 8;
    shape.grid.x = static_cast<unsigned>(ceil_div(call.inner / 8, many ? 256 : 128));
    shape.grid.y = static_cast<unsigned>(min(call.rows, int64_t{32768}));
    shape.grid.z = static_cast<unsigned>(ceil_div(call.rows, int64_t{shape.grid.y}));
    if (many) return device::launch_dependent(stream, shape, "glu_groups", glu_groups<F, 2, T, Y>, call);
    return device::launch_dependent(stream, shape, "glu_groups", glu_groups<F, 1, T, Y>, call);
  }
  shape.block.x = 256;
  shape.grid.x = static_cast<unsigned>(min(ceil_div(call.rows * call.inner, int64_t{256}), int64_t{132 * 8}));
  return device::launch_dependent(stream, shape, "glu_elements", glu_elements<F, T, Y>, call);
}

}  // namespace ridge::cuda
