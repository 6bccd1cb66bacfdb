#pragma once
// How attention_tiles ends: rows that one block had alone are written; of shared ones each block leaves its
// sums, and the last to arrive joins them in the order of the keys, so that a result does not depend on
// timing.

#include "kernels/attention_tiles_call.cuh"

namespace ridge::cuda {

/// Writes a thread's columns of row i of the block.
template <class Traits>
__device__ __forceinline__ void store_tile_row(const AttentionTilesCall& call, device::Waited waited,
                                               const TileRows& rows, int64_t i,
                                               const float (&out)[Traits::kQuads][4], float top, float sum) {
  const int tx = threadIdx.x & 15;
  const int64_t token = rows.first_row + i / call.ratio, head = rows.kv_head * call.ratio + i % call.ratio;
  const int64_t row = token * call.o_stride + head * call.o_head_stride;
  const float scale = sum > 0 ? 1 / sum : sum;  // a row that sees nothing is 0; NaN stays
#pragma unroll
  for (int c = 0; c < Traits::kQuads; ++c)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (const int column = 64 * c + 4 * tx + e; column < call.head_dim) {
        if (call.narrow)
          reinterpret_cast<bf16*>(call.o.after(waited))[row + column] =
              device::from_float<bf16>(out[c][e] * scale);
        else
          call.o.after(waited)[row + column] = out[c][e] * scale;
      }
  float* const lse = call.lse.after(waited);
  if (lse && tx == 0)
    lse[token * call.lse_stride + head * call.lse_head_stride] = (top + log2f(sum)) * 0.693147181f;
}

/// This thread's part of the joined sums of a row.
template <class Traits>
__device__ __forceinline__ void join_row(const AttentionTilesCall& call, device::Waited waited,
                                         const TileRows& rows, int row, const float* partials, int parts) {
  const int tx = threadIdx.x & 15;
  float out[Traits::kQuads][4] = {}, top = -INFINITY, sum = 0;
  for (int part = 0; part < parts; ++part) {
    const float* const from = partials + int64_t{part} * Traits::kPartialFloats + row * Traits::kPartialRow;
    const float4 ends = device::ptx::load_published(from + Traits::kHeadDim);
    const float next = fmaxf(top, ends.x), base = next == -INFINITY ? 0 : next;
    const float old_scale = device::ptx::exp2_approx(top - base),
                scale = device::ptx::exp2_approx(ends.x - base);
#pragma unroll
    for (int c = 0; c < Traits::kQuads; ++c) {
      const float4 o = device::ptx::load_published(from + 64 * c + 4 * tx);
      out[c][0] = out[c][0] * old_scale + o.x * scale, out[c][1] = out[c][1] * old_scale + o.y * scale;
      out[c][2] = out[c][2] * old_scale + o.z * scale, out[c][3] = out[c][3] * old_scale + o.w * scale;
    }
    sum = sum * old_scale + ends.y * scale;
    top = next;
  }
  store_tile_row<Traits>(call, waited, rows, rows.begin + row, out, top, sum);
}

template <class Traits>
__device__ __forceinline__ void finish_rows(const TileState<Traits>& state, const AttentionTilesCall& call,
                                            device::Waited waited, const TileRows& rows,
                                            const TileRange& range) {
  const int tx = threadIdx.x & 15, first = (threadIdx.x >> 4) * Traits::kRowsOfThread;
  if (range.part >= range.parts) return;
  if (range.parts == 1) {
#pragma unroll
    for (int i = 0; i < Traits::kRowsOfThread; ++i)
      if (rows.begin + first + i < rows.end)
        store_tile_row<Traits>(call, waited, rows, rows.begin + first + i, state.out[i], state.top[i],
                               state.sum[i]);
    return;
  }
  const int64_t unit = blockIdx.z * int64_t{gridDim.y} + blockIdx.y;
  float* const partials = call.partials.after(waited) + unit * gridDim.x * Traits::kPartialFloats;
#pragma unroll
  for (int i = 0; i < Traits::kRowsOfThread; ++i) {
    float* const to =
        partials + int64_t{range.part} * Traits::kPartialFloats + (first + i) * Traits::kPartialRow;
#pragma unroll
    for (int c = 0; c < Traits::kQuads; ++c)
      *reinterpret_cast<float4*>(to + 64 * c + 4 * tx) = {state.out[i][c][0], state.out[i][c][1],
                                                          state.out[i][c][2], state.out[i][c][3]};
    if (tx == 0) *reinterpret_cast<float4*>(to + Traits::kHeadDim) = {state.top[i], state.sum[i], 0, 0};
  }
  __syncthreads();
  __shared__ bool last;
  if (threadIdx.x == 0) {
    uint32_t* const arrivals = call.arrivals.after(waited) + unit;
    last = device::ptx::atomic_add_ordered(arrivals, 1) + 1 == static_cast<uint32_t>(range.parts);
    if (last) *arrivals = 0;  // as the next call expects it
  }
  __syncthreads();
  if (!last) return;
#pragma unroll
  for (int i = 0; i < Traits::kRowsOfThread; ++i)
    if (rows.begin + first + i < rows.end)
      join_row<Traits>(call, waited, rows, first + i, partials, range.parts);
}

}  // namespace ridge::cuda
