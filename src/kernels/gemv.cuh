#pragma once
// gemv_rows: y[out] = w[out, in] · x[in], one token. 16-bit in, f32 sums. Limit: read bandwidth of w.
//
// A warp owns kRows rows and walks them together, 512 bytes of each row a step, kUnroll steps at a time: the
// next kUnroll x kRows vectors of 16 bytes a lane are in flight while the present ones are multiplied. The
// first are asked for before the wait, so they travel while the launch before this one drains. kSplit warps
// share the same rows, each a contiguous part of `in`, and meet in shared memory in the order of the parts.
// In flight on an SM with 32 warps, kRows x kUnroll = 4: 64 KiB; bandwidth x latency asks for about 40.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/reduce.cuh"
#include "kernels/linear_call.cuh"

namespace ridge::cuda {

template <int kWarpsIn, int kRowsIn, int kUnrollIn, int kSplitIn>
struct GemvTraits {
  static constexpr int kWarps = kWarpsIn, kRows = kRowsIn, kUnroll = kUnrollIn, kSplit = kSplitIn;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kRowsOfBlock = kWarps / kSplit * kRows;
  static_assert(kWarps % kSplit == 0);
};

/// A lane's part of kRows rows: vectors first + 32 i of each row.
template <class Traits, class T>
struct GemvRows {
  const T* row[Traits::kRows];
  uint4 v[Traits::kUnroll][Traits::kRows];

  __device__ __forceinline__ void load(int64_t vector, int64_t end) {
#pragma unroll
    for (int u = 0; u < Traits::kUnroll; ++u)
#pragma unroll
      for (int r = 0; r < Traits::kRows; ++r)
        v[u][r] = vector + 32 * u < end ? device::ptx::load_once(row[r] + (vector + 32 * u) * 8) : uint4{};
  }
};

template <class Traits, class T, class X, class Y>
__global__ __launch_bounds__(Traits::kThreads) void gemv_rows(device::Upstream upstream,
                                                              LinearCall<T, X, Y> call) {
  constexpr int kRows = Traits::kRows, kUnroll = Traits::kUnroll, kStep = 32 * kUnroll;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int part = warp % Traits::kSplit;
  const int64_t first_row = int64_t{blockIdx.x} * Traits::kRowsOfBlock + warp / Traits::kSplit * kRows;
  const int64_t vectors = call.in / 8;
  const int64_t part_vectors = ceil_div(ceil_div(vectors, 32), Traits::kSplit) * 32;
  const int64_t begin = part * part_vectors, end = min(vectors, begin + part_vectors);

  GemvRows<Traits, T> now, next;
#pragma unroll
  for (int r = 0; r < kRows; ++r)  // rows past the end read the last one; their sums are dropped
    now.row[r] = next.row[r] = call.w + min(first_row + r, call.out - 1) * call.w_stride;
  now.load(begin + lane, end);
  upstream.release_next();
  const auto waited = upstream.wait();
  const X* const x = call.x.after(waited);

  float sum[kRows] = {};
  for (int64_t vector = begin + lane; vector - lane < end; vector += kStep) {
    next.load(vector + kStep, end);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      float xs[8] = {};
      const int64_t at = vector + 32 * u;
      if (at < end) device::load8(x + at * 8, xs);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float ws[8];
        device::unpack<T>(now.v[u][r], ws);
#pragma unroll
        for (int i = 0; i < 8; ++i) sum[r] = fmaf(ws[i], xs[i], sum[r]);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
#pragma unroll
      for (int r = 0; r < kRows; ++r) now.v[u][r] = next.v[u][r];
  }

  __shared__ float parts[Traits::kSplit][Traits::kRowsOfBlock];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sum[r] = device::warp_reduce<device::Sum>(sum[r]);
    if (Traits::kSplit > 1 && lane == r) parts[part][warp / Traits::kSplit * kRows + r] = sum[r];
  }
  float mine = sum[0];
  int64_t row = first_row + lane;
  bool writes = lane < kRows;
  if constexpr (Traits::kSplit > 1) {
    __syncthreads();
    const int r = threadIdx.x;
    writes = r < Traits::kRowsOfBlock;
    row = int64_t{blockIdx.x} * Traits::kRowsOfBlock + r;
    mine = 0;
    if (writes)
      for (int p = 0; p < Traits::kSplit; ++p) mine += parts[p][r];
  } else {
#pragma unroll
    for (int r = 1; r < kRows; ++r) mine = lane == r ? sum[r] : mine;
  }
  if (!writes || row >= call.out) return;
  store_output(call, waited, 0, row, mine);
}

template <class Traits, class T, class X, class Y>
Status launch_gemv(cudaStream_t stream, const LinearCall<T, X, Y>& call) {
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>((call.out + Traits::kRowsOfBlock - 1) / Traits::kRowsOfBlock);
  shape.block.x = Traits::kThreads;
  return device::launch_dependent(stream, shape, "gemv_rows", gemv_rows<Traits, T, X, Y>, call);
}

}  // namespace ridge::cuda
