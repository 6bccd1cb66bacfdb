#pragma once
// attention_decode_split: one query token a sequence against its paged K and V. 16-bit elements, f32 sums.
// Limit: read bandwidth of K and V.
//
// A unit is a sequence, a KV head and up to 16 of the query heads that share it. The keys of all units, in
// tiles of 16 x kWarps, form one line, cut into equal shares, one a block, from the lengths on the device
// (DecodePlan): a graph captured once serves every length. In a tile each warp has 16 keys; it copies them
// (cp.async, 16 bytes a lane) into a ring of its own, kStages deep, and never meets another warp before the
// end of its keys. Bytes in flight on an SM: blocks x kWarps x (kStages - 1) x 16 keys x 2 x head_dim x 2;
// with 2 x 4 x 2 and head_dim 128: 131 KB. The 16 x 8 x 16 matrix step has query heads as rows (8 or 16
// live), keys as columns: S = Q·Kᵀ, then O += P·V. Rows of the ring are padded by 16 bytes: the 8 rows of an
// ldmatrix fall into different banks for every head_dim. A unit that one block did alone is written at once.
// Of a shared one each block leaves its sums in the workspace; the last to arrive joins them in the order of
// the blocks, so the result does not depend on timing.

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

/// Where the 16 keys from `first` on lie, in elements from the start of K: for lane % 16's key.
template <class Traits, class T>
__device__ __forceinline__ int64_t key_offset(const AttentionDecodeCall<T>& call, const int32_t* pages,
                                              int32_t first, int32_t end, int64_t head_offset) {
  // Past the end: the last key, copied as zeros.
  const uint32_t page_size = static_cast<uint32_t>(call.page_size),
                 at = static_cast<uint32_t>(min(first + static_cast<int32_t>(threadIdx.x & 15), end - 1));
  const uint32_t page = call.page_shift >= 0 ? at >> call.page_shift : at / page_size;
  return pages[page] * call.page_stride + (at - page * page_size) * call.slot_stride + head_offset;
}

/// Starts the copy of 16 keys of K and V into a stage of this warp's ring; keys from `end` on become zeros.
template <class Traits, class T>
__device__ __forceinline__ void copy_keys(uint32_t stage, const T* k, const T* v, int64_t offset,
                                          int32_t first, int32_t end) {
  constexpr int kVectors = Traits::kHeadDim / 8;
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int i = 0; i < kVectors / 2; ++i) {
    const int at = i * 32 + lane, row = at / kVectors, column = at % kVectors;
    const int64_t source = __shfl_sync(0xffffffffu, offset, row) + column * 8;
    const uint32_t bytes = first + row < end ? 16 : 0,
                   target = stage + (row * Traits::kStride + column * 8) * 2;
    device::ptx::copy_async_16(target, k + source, bytes);
    device::ptx::copy_async_16(target + Traits::kStageKeys * Traits::kStride * 2, v + source, bytes);
  }
}

/// Scores of 16 keys: s[n] = columns 8n + 2t, 2t + 1 of rows g (0, 1) and g + 8 (2, 3), in base 2, masked.
template <class Traits, class T>
__device__ __forceinline__ void score_keys(float (&s)[2][4],
                                           const uint32_t (&q)[Traits::kHeadDim / 16][Traits::kRows / 4],
                                           uint32_t stage, const AttentionDecodeCall<T>& call, int32_t first,
                                           int32_t begin, int32_t end) {
  const int lane = threadIdx.x & 31;
  const uint32_t row = stage + ((lane & 7) + (lane >> 4) * 8) * Traits::kStride * 2 + (lane >> 3 & 1) * 16;
#pragma unroll
  for (int d = 0; d < Traits::kHeadDim / 16; ++d) {
    uint32_t b[4];
    device::ptx::load_matrix_x4(b, row + d * 32);
    const uint32_t a[4] = {q[d][0], Traits::kRows == 16 ? q[d][2 % (Traits::kRows / 4)] : 0, q[d][1],
                           Traits::kRows == 16 ? q[d][3 % (Traits::kRows / 4)] : 0};
    device::mma<T>(s[0], a, b[0], b[1]);
    device::mma<T>(s[1], a, b[2], b[3]);
  }
  constexpr float kLog2e = 1.44269504f;
  const bool whole = first >= begin && first + 16 <= end;
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float v = s[n][j] * call.scale;
      if (call.softcap > 0) v = call.softcap * tanhf(v / call.softcap);
      const int32_t key = first + n * 8 + (lane & 3) * 2 + (j & 1);
      s[n][j] = whole || (key >= begin && key < end) ? v * kLog2e : -INFINITY;
    }
}

/// Takes 16 scored keys and their V into the running softmax.
template <class Traits, class T>
__device__ __forceinline__ void take_keys(DecodeState<Traits>& state, float (&s)[2][4], uint32_t stage) {
  const int lane = threadIdx.x & 31;
  float scale[2] = {1, 1};
#pragma unroll
  for (int h = 0; h < Traits::kRows / 8; ++h) {
    float top = fmaxf(fmaxf(s[0][2 * h], s[0][2 * h + 1]), fmaxf(s[1][2 * h], s[1][2 * h + 1]));
    top = fmaxf(state.top[h], device::warp_reduce<device::Max, 4>(top));
    const float base = top == -INFINITY ? 0 : top;
    scale[h] = device::ptx::exp2_approx(state.top[h] - base);
    state.top[h] = top;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 2 * h; j < 2 * h + 2; ++j) sum += s[n][j] = device::ptx::exp2_approx(s[n][j] - base);
    state.sum[h] = state.sum[h] * scale[h] + sum;
  }
  if (__any_sync(0xffffffffu, scale[0] != 1 || scale[1] != 1)) {
#pragma unroll
    for (int c = 0; c < DecodeState<Traits>::kColumns; ++c)
#pragma unroll
      for (int j = 0; j < 2 * (Traits::kRows / 8); ++j) state.out[c][j] *= scale[j >> 1];
  }
  const uint32_t p[4] = {
      device::pack2<T>(s[0][0], s[0][1]), Traits::kRows == 16 ? device::pack2<T>(s[0][2], s[0][3]) : 0,
      device::pack2<T>(s[1][0], s[1][1]), Traits::kRows == 16 ? device::pack2<T>(s[1][2], s[1][3]) : 0};
  const uint32_t row = stage + (Traits::kStageKeys + (lane & 7) + (lane >> 3 & 1) * 8) * Traits::kStride * 2 +
                       (lane >> 4) * 16;
#pragma unroll
  for (int c = 0; c < Traits::kHeadDim / 16; ++c) {
    uint32_t b[4];
    device::ptx::load_matrix_x4_transposed(b, row + c * 32);
    device::mma<T>(state.out[2 * c], p, b[0], b[1]);
    device::mma<T>(state.out[2 * c + 1], p, b[2], b[3]);
  }
}

/// This warp's query rows as the a of the matrix step; rows that do not exist are 0.
template <class Traits, class T>
__device__ __forceinline__ void load_queries(uint32_t (&q)[Traits::kHeadDim / 16][Traits::kRows / 4],
                                             const T* rows, int live, int64_t head_stride) {
  const int g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3;
#pragma unroll
  for (int h = 0; h < Traits::kRows / 8; ++h)
#pragma unroll
    for (int d = 0; d < Traits::kHeadDim / 16; ++d)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        q[d][2 * h + j] = g + 8 * h < live ? *reinterpret_cast<const uint32_t*>(
                                                 rows + (g + 8 * h) * head_stride + d * 16 + j * 8 + t * 2)
                                           : 0;
}

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
template <class Traits, class T>
__device__ __forceinline__ void store_row(const AttentionDecodeCall<T>& call, device::Waited waited,
                                          int64_t sequence, int64_t head, int column, float4 out, float top,
                                          float sum) {
  const float scale = sum > 0 ? 1 / sum : sum;  // NaN stays NaN
  const uint2 packed = {device::pack2<T>(out.x * scale, out.y * scale),
                        device::pack2<T>(out.z * scale, out.w * scale)};
  *reinterpret_cast<uint2*>(call.out.after(waited) + sequence * call.out_stride + head * Traits::kHeadDim +
                            column) = packed;
  float* const lse = call.lse.after(waited);
  if (lse && column == 0) lse[sequence * call.heads + head] = (top + log2f(sum)) * 0.693147181f;
}

/// Joins the sums of the blocks [first, last] that shared this piece's unit, in their order.
template <class Traits, class T>
__device__ __forceinline__ void join_blocks(const AttentionDecodeCall<T>& call, device::Waited waited,
                                            const DecodePlan& plan, const DecodePiece& piece) {
  constexpr int kQuads = Traits::kHeadDim / 4;
  const float* const partials = call.partials.after(waited);
  for (int i = threadIdx.x; i < piece.rows * kQuads; i += Traits::kThreads) {
    const int row = i / kQuads, column = i % kQuads * 4;
    float top = -INFINITY, sum = 0;
    float4 out = {};
#pragma unroll 8
    for (int32_t block = piece.first_block; block <= piece.last_block; ++block) {
      const float* const at = partials +
                              int64_t{plan.slot(block, piece.unit_begin)} * Traits::kPartialFloats +
                              row * Traits::kPartialRow;
      const float4 o = device::ptx::load_published(at + column),
                   ts = device::ptx::load_published(at + Traits::kHeadDim);
      const float next = fmaxf(top, ts.x), base = next == -INFINITY ? 0 : next;
      const float old_scale = device::ptx::exp2_approx(top - base),
                  scale = device::ptx::exp2_approx(ts.x - base);
      out = {out.x * old_scale + o.x * scale, out.y * old_scale + o.y * scale,
             out.z * old_scale + o.z * scale, out.w * old_scale + o.w * scale};
      sum = sum * old_scale + ts.y * scale;
      top = next;
    }
    store_row<Traits, T>(call, waited, piece.sequence, piece.head + row, column, out, top, sum);
  }
}

/// Joins the warps; a unit of one block is written, of another's the sums are left and the last to arrive
/// finishes.
template <class Traits, class T>
__device__ __forceinline__ void finish_piece(const DecodeState<Traits>& state, unsigned char* shared,
                                             const AttentionDecodeCall<T>& call, device::Waited waited,
                                             const DecodePlan& plan, const DecodePiece& piece) {
  auto& join = *reinterpret_cast<typename Traits::Join*>(shared);
  join_warps<Traits>(state, join);
  constexpr int kQuads = Traits::kHeadDim / 4;
  const bool alone = piece.first_block == piece.last_block;
  float* const partial =
      call.partials.after(waited) + int64_t{plan.slot(blockIdx.x, piece.unit_begin)} * Traits::kPartialFloats;
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
      store_row<Traits, T>(call, waited, piece.sequence, piece.head + row, column, out, top, sum);
    } else {
      float* const at = partial + row * Traits::kPartialRow;
      *reinterpret_cast<float4*>(at + column) = out;
      if (column == 0) *reinterpret_cast<float4*>(at + Traits::kHeadDim) = {top, sum, 0, 0};
    }
  }
  __syncthreads();  // all sums are written; the rings may be filled again
  if (alone) return;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    uint32_t* const arrivals = call.arrivals.after(waited) + piece.unit;
    const uint32_t shares = static_cast<uint32_t>(piece.last_block - piece.first_block + 1);
    last = device::ptx::atomic_add_ordered(arrivals, 1) + 1 == shares;
    if (last) *arrivals = 0;  // as the next call expects it
  }
  __syncthreads();
  if (last) join_blocks<Traits, T>(call, waited, plan, piece);
}

template <class Traits, class T>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void attention_decode_split(device::Upstream upstream,
                                                                               AttentionDecodeCall<T> call) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = threadIdx.x >> 5;
  upstream.release_next();
  if (!call.lengths_settled) (void)upstream.wait();
  DecodePlan plan = plan_decode<Traits>(call, reinterpret_cast<int32_t*>(shared + Traits::kRingBytes));

  const uint32_t ring = device::ptx::shared_address(shared) + warp * Traits::kStages * Traits::kStageBytes;
  bool first_piece = true;
  for (int32_t tile = plan.begin; tile < plan.end;) {
    const DecodePiece piece = plan.template piece_at<Traits>(call, tile);
    tile = piece.tile_end;
    const int32_t* const pages = call.pages + piece.sequence * call.table_stride;
    const int64_t head_offset = piece.kv_head * call.head_stride;
    const int32_t first = piece.first_key + warp * Traits::kStageKeys, last = piece.last_key;
    const auto copy = [&](int stage, int32_t key, int64_t offset) {  // this warp's 16 keys from `key` on
      if (key < last)
        copy_keys<Traits>(ring + stage * Traits::kStageBytes, call.k, call.v, offset, key, last);
      device::ptx::copy_async_commit();
    };
    const auto locate = [&](int32_t key) {
      return key < last ? key_offset<Traits>(call, pages, key, last, head_offset) : 0;
    };
    // The first stages: before the wait if everything in them was written before this step.
    int64_t offsets[Traits::kStages - 1];
#pragma unroll
    for (int i = 0; i < Traits::kStages - 1; ++i) offsets[i] = locate(first + i * Traits::kTileKeys);
    if (first_piece && last > piece.end_key - call.unsettled) (void)upstream.wait();
#pragma unroll
    for (int i = 0; i < Traits::kStages - 1; ++i) copy(i, first + i * Traits::kTileKeys, offsets[i]);
    const auto waited = upstream.wait();
    first_piece = false;
    uint32_t q[Traits::kHeadDim / 16][Traits::kRows / 4];
    load_queries<Traits>(
        q, call.q.after(waited) + piece.sequence * call.q_stride + piece.head * Traits::kHeadDim, piece.rows,
        Traits::kHeadDim);

    DecodeState<Traits> state;
    constexpr int32_t kAhead = (Traits::kStages - 1) * Traits::kTileKeys;
    int64_t next_offset = locate(first + kAhead);
    int stage = 0;
    for (int32_t key = first; key < last; key += Traits::kTileKeys) {
      device::ptx::copy_async_wait<Traits::kStages - 2>();
      __syncwarp();  // everybody's copies of this stage are here, and the one before is free
      copy(stage == 0 ? Traits::kStages - 1 : stage - 1, key + kAhead, next_offset);
      next_offset = locate(key + kAhead + Traits::kTileKeys);
      const uint32_t place = ring + stage * Traits::kStageBytes;
      float s[2][4] = {};
      score_keys<Traits>(s, q, place, call, key, piece.begin_key, last);
      take_keys<Traits, T>(state, s, place);
      stage = stage + 1 == Traits::kStages ? 0 : stage + 1;
    }
    device::ptx::copy_async_wait<0>();
    finish_piece<Traits>(state, shared, call, waited, plan, piece);
  }
  const auto waited = upstream.wait();
  store_empty<Traits>(call, waited);
}

template <class Traits, class T>
Status launch_attention_decode(cudaStream_t stream, const AttentionDecodeCall<T>& call, int multiprocessors) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      attention_decode_split<Traits, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of attention_decode_split"));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(multiprocessors * Traits::kBlocksPerSm);
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kRingBytes + static_cast<int>(round_up((call.batch + 1) * 4, 16));
  return device::launch_dependent(stream, shape, "attention_decode_split", attention_decode_split<Traits, T>,
                                  call);
}

}  // namespace ridge::cuda
