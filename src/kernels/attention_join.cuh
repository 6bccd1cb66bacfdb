#pragma once
// How a decode attention ends: warps join their sums in shared memory, blocks that shared a unit in global
// memory, both in the order of the keys.

#include "kernels/attention_plan.cuh"

namespace ridge::cuda {

/// The running softmax of one warp: row g of its query heads, and row g + 8 when kRows is 16.
template <class Traits>
struct DecodeState {
  static constexpr int kColumns = Traits::kHeadDim / 8;
  float out[kColumns][4] = {};
  float top[2] = {-INFINITY, -INFINITY};  // greatest score, base 2
  float sum[2] = {};                      // of this lane's keys only
};

/// Leaves the warps' states in shared memory and joins them: the block's sums for `piece`, row-major, and
/// top, sum.
template <class Traits>
__device__ __forceinline__ void join_warps(const DecodeState<Traits>& state, typename Traits::Join& join) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  __syncthreads();  // the rings' memory becomes the sums'
#pragma unroll
  for (int h = 0; h < Traits::kRows / 8; ++h) {
    const float sum = device::warp_reduce<device::Sum, 4>(state.sum[h]);
    if (t == 0) join.top[warp][g + 8 * h] = state.top[h], join.sum[warp][g + 8 * h] = sum;
#pragma unroll
    for (int c = 0; c < DecodeState<Traits>::kColumns; ++c)
      *reinterpret_cast<float2*>(&join.out[warp][g + 8 * h][c * 8 + t * 2]) = {state.out[c][2 * h],
                                                                               state.out[c][2 * h + 1]};
  }
  __syncthreads();
}

/// Writes four columns of a finished query row: out = sums / sum, and the log-sum-exp once a row.
template <class Traits, class T, class Io>
__device__ __forceinline__ void store_row(const AttentionDecodeCall<T, Io>& call, device::Waited waited,
                                          int64_t sequence, int64_t head, int column, float4 out, float top,
                                          float sum) {
  const float scale = sum > 0 ? 1 / sum : sum;  // NaN stays NaN
  const int64_t at = sequence * call.out_stride + head * Traits::kHeadDim + column;
  Io* const row = call.out.after(waited) + at;
  if (sizeof(Io) == 4 && call.narrow) {
    *reinterpret_cast<uint2*>(reinterpret_cast<bf16*>(call.out.after(waited)) + at) = {
        device::pack2<bf16>(out.x * scale, out.y * scale), device::pack2<bf16>(out.z * scale, out.w * scale)};
  } else if constexpr (sizeof(Io) == 4) {
    *reinterpret_cast<float4*>(row) = {out.x * scale, out.y * scale, out.z * scale, out.w * scale};
  } else {
    *reinterpret_cast<uint2*>(row) = {device::pack2<Io>(out.x * scale, out.y * scale),
                                      device::pack2<Io>(out.z * scale, out.w * scale)};
  }
  float* const lse = call.lse.after(waited);
  if (lse && column == 0) lse[sequence * call.heads + head] = (top + log2f(sum)) * 0.693147181f;
}

/// Four columns of a row over several blocks.
struct JoinedRow {
  float4 out = {};
  float top = -INFINITY, sum = 0;

  /// Takes kCount shares' sums; their loads are in flight together. `at(i)`: where share i left this row.
  template <int kCount, class At>
  __device__ __forceinline__ void take(const At& at, int column, int head_dim) {
    float4 o[kCount], ts[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      o[i] = device::ptx::load_published(at(i) + column),
      ts[i] = device::ptx::load_published(at(i) + head_dim);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float next = fmaxf(top, ts[i].x), base = next == -INFINITY ? 0 : next;
      const float old_scale = device::ptx::exp2_approx(top - base),
                  scale = device::ptx::exp2_approx(ts[i].x - base);
      out = {out.x * old_scale + o[i].x * scale, out.y * old_scale + o[i].y * scale,
             out.z * old_scale + o[i].z * scale, out.w * old_scale + o[i].w * scale};
      sum = sum * old_scale + ts[i].y * scale;
      top = next;
    }
  }
};

/// Joins the sums of the shares [first, last] of this piece's unit, in their order.
template <class Traits, class T, class Io>
__device__ __forceinline__ void join_blocks(const AttentionDecodeCall<T, Io>& call, device::Waited waited,
                                            const DecodePlan& plan, const DecodePiece& piece) {
  constexpr int kQuads = Traits::kHeadDim / 4;
  const float* const partials = call.partials.after(waited);
  for (int i = threadIdx.x; i < piece.rows * kQuads; i += Traits::kThreads) {
    const int row = i / kQuads, column = i % kQuads * 4;
    JoinedRow joined;
    int32_t share = piece.first_share;
    const auto at = [&](int j) {
      return partials + plan.slot(share + j, piece.unit_begin) * Traits::kPartialFloats +
             row * Traits::kPartialRow;
    };
    for (; share + 8 <= piece.last_share + 1; share += 8) joined.take<8>(at, column, Traits::kHeadDim);
    for (; share + 2 <= piece.last_share + 1; share += 2) joined.take<2>(at, column, Traits::kHeadDim);
    for (; share <= piece.last_share; ++share) joined.take<1>(at, column, Traits::kHeadDim);
    store_row<Traits>(call, waited, piece.sequence, piece.head + row, column, joined.out, joined.top,
                      joined.sum);
  }
}

/// Joins the warps; a unit of one block is written, of another's the sums are left and the last to arrive
/// finishes.
template <class Traits, class T, class Io>
__device__ __forceinline__ void finish_piece(const DecodeState<Traits>& state, unsigned char* shared,
                                             const AttentionDecodeCall<T, Io>& call, device::Waited waited,
                                             const DecodePlan& plan, const DecodePiece& piece) {
  auto& join = *reinterpret_cast<typename Traits::Join*>(shared);
  join_warps<Traits>(state, join);
  constexpr int kQuads = Traits::kHeadDim / 4;
  const bool alone = piece.first_share == piece.last_share;
  float* const partial =
      call.partials.after(waited) + plan.slot(plan.share, piece.unit_begin) * Traits::kPartialFloats;
  for (int i = threadIdx.x; i < piece.rows * kQuads; i += Traits::kThreads) {
    const int row = i / kQuads, column = i % kQuads * 4;
    float top = -INFINITY, sum = 0;
#pragma unroll
    for (int w = 0; w < Traits::kWarps; ++w) top = fmaxf(top, join.top[w][row]);
    const float base = top == -INFINITY ? 0 : top;
    float4 out = {};
#pragma unroll
    for (int w = 0; w < Traits::kWarps; ++w) {
      const float scale = device::ptx::exp2_approx(join.top[w][row] - base);
      const float4 o = *reinterpret_cast<const float4*>(&join.out[w][row][column]);
      out = {out.x + o.x * scale, out.y + o.y * scale, out.z + o.z * scale, out.w + o.w * scale};
      sum += join.sum[w][row] * scale;
    }
    if (alone) {
      store_row<Traits>(call, waited, piece.sequence, piece.head + row, column, out, top, sum);
    } else {
      float* const at = partial + row * Traits::kPartialRow;
      *reinterpret_cast<float4*>(at + column) = out;
      if (column == 0) *reinterpret_cast<float4*>(at + Traits::kHeadDim) = {top, sum, 0, 0};
    }
  }
  if constexpr (Traits::kBoxes) device::ptx::fence_proxy_async();
  __syncthreads();  // all sums are written; the rings may be filled again
  if (alone) return;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    uint32_t* const arrivals = call.arrivals.after(waited) + piece.unit;
    const uint32_t shares = static_cast<uint32_t>(piece.last_share - piece.first_share + 1);
    last = device::ptx::atomic_add_ordered(arrivals, 1) + 1 == shares;
    if (last) *arrivals = 0;  // as the next call expects it
  }
  __syncthreads();
  if (last) join_blocks<Traits>(call, waited, plan, piece);
}

}  // namespace ridge::cuda
