#pragma once
// attention_decode_split: one query token a sequence against its paged K and V. 16-bit elements, f32 sums.
// Limit: read bandwidth of K and V.
//
// A unit is a sequence, a KV head and up to 16 of the query heads that share it; the units of a sequence are
// its groups. The keys of all sequences, in tiles of 16 x kWarps, form one line, cut into equal shares from
// the lengths on the device (DecodePlan): a graph captured once serves every length. A share has one block
// for each group, side by side: they read the same pages at the same time, each its part of a row, so that
// DRAM rows are opened once. In a tile each warp has 16 keys; they are copied (kBoxes: by the copy engine, a
// box of K and one of V; else cp.async, 16 bytes a lane) into a ring of its own, kStages deep, and it never
// meets another warp before the end of its keys. Bytes in flight
// on an SM: blocks x kWarps x (kStages - 1) x 16 keys x 2 x head_dim x 2. The 16 x 8 x 16 matrix step has
// query heads as rows (8 or 16 live), keys as columns: S = Q·Kᵀ, then O += P·V. Rows of the ring are swizzled
// or padded by 16 bytes: the 8 rows of an ldmatrix fall into different banks for every head_dim. A unit that
// one block did alone is written at once. Of a shared one each block leaves its sums in the workspace; the
// last to arrive joins them in the order of the shares, so the result does not depend on timing.

#include "kernels/attention_boxes.cuh"
#include "kernels/attention_join.cuh"
#include "kernels/attention_terms.cuh"

namespace ridge::cuda {

/// Where 16 keys from `first` on lie, in elements from the start of K: with pages of whole stages the first
/// key (the others follow slot_stride apart), else lane % 16's own key; keys past the end count as the last.
template <class Traits, class T, class Io>
__device__ __forceinline__ int64_t key_offset(const AttentionDecodeCall<T, Io>& call, device::Checks checks,
                                              const int32_t* pages, int32_t sequence, int32_t first,
                                              int32_t end, int64_t head_offset) {
  const uint32_t page_size = static_cast<uint32_t>(call.page_size);
  const uint32_t at = call.whole_pages ? first : min(first + static_cast<int32_t>(threadIdx.x & 15), end - 1);
  const uint32_t page = call.page_shift >= 0 ? at >> call.page_shift : at / page_size;
  return page_of(call, checks, pages, sequence, page) * call.page_stride +
         (at - page * page_size) * call.slot_stride + head_offset;
}

/// Starts the copy of 16 keys of K and V into a stage of this warp's ring; keys from `end` on become zeros.
template <class Traits, class T, class Io>
__device__ __forceinline__ void copy_keys(uint32_t stage, const AttentionDecodeCall<T, Io>& call,
                                          int64_t offset, int32_t first, int32_t end) {
  constexpr int kVectors = Traits::kHeadDim / 8, kValues = Traits::kStageKeys * Traits::kStride * 2;
  const int lane = threadIdx.x & 31;
  if (call.whole_pages && first + Traits::kStageKeys <= end) {
    const int64_t to_values = call.v - call.k;
    const int stride = static_cast<int>(call.slot_stride);
    const T* const start = call.k + offset;
#pragma unroll
    for (int i = 0; i < kVectors / 2; ++i) {
      const int at = i * 32 + lane, row = at / kVectors, column = at % kVectors;
      const T* const source = start + (row * stride + column * 8);
      const uint32_t target = stage + (row * Traits::kStride + column * 8) * 2;
      device::ptx::copy_async_16(target, source, 16);
      device::ptx::copy_async_16(target + kValues, source + to_values, 16);
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < kVectors / 2; ++i) {
    const int at = i * 32 + lane, row = at / kVectors, column = at % kVectors;
    const int64_t other = __shfl_sync(0xffffffffu, offset, row);
    const int64_t source = (call.whole_pages ? offset + row * call.slot_stride : other) + column * 8;
    const uint32_t bytes = first + row < end ? 16 : 0,
                   target = stage + (row * Traits::kStride + column * 8) * 2;
    device::ptx::copy_async_16(target, call.k + source, bytes);
    device::ptx::copy_async_16(target + kValues, call.v + source, bytes);
  }
}

/// f32 values are two terms of T in the matrix step: rows g + 8 of a, which no query head has, take the
/// second ones, so that they cost no step of their own.
template <class T, class Io>
inline constexpr bool kTwoTerms = sizeof(Io) > sizeof(T);

/// s = factor * cap * tanh(s / cap).
__device__ __forceinline__ void cap_scores(float (&s)[2][4], float cap, float factor) {
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) s[n][j] = factor * cap * tanhf(s[n][j] / cap);
}

/// Scores of 16 keys: s[n] = columns 8n + 2t, 2t + 1 of rows g (0, 1) and g + 8 (2, 3), in base 2, masked.
/// All of a batch of K is loaded before the first step, and even and odd steps are chains of their own: one
/// warp alone would otherwise wait for each.
template <class Traits, class T, class Io>
__device__ __forceinline__ void score_keys(float (&s)[2][4], const uint32_t (&q)[Traits::kHeadDim / 16][4],
                                           uint32_t stage, const AttentionDecodeCall<T, Io>& call,
                                           int32_t first, int32_t begin, int32_t end) {
  constexpr int kSteps = Traits::kHeadDim / 16, kBatch = Traits::kBatch;
  const int lane = threadIdx.x & 31;
  const uint32_t row = ring_row<Traits>(stage, (lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
  float even[2][4] = {}, odd[2][4] = {};
#pragma unroll
  for (int first_step = 0; first_step < kSteps; first_step += kBatch) {
    uint32_t b[kBatch][4];
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      if (first_step + i < kSteps) device::ptx::load_matrix_x4(b[i], ring_step<Traits>(row, first_step + i));
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int d = first_step + i;
      if (d >= kSteps) continue;
      device::mma<T>(i & 1 ? odd[0] : even[0], q[d], b[i][0], b[i][1]);
      device::mma<T>(i & 1 ? odd[1] : even[1], q[d], b[i][2], b[i][3]);
    }
  }
  constexpr float kLog2e = 1.44269504f;
  const float scale = call.softcap > 0 ? call.scale : call.scale * kLog2e;
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      s[n][j] = even[n][j] + odd[n][j];
      if (kTwoTerms<T, Io> && j >= 2) s[n][j - 2] += s[n][j];
    }
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) s[n][j] *= scale;
  if (call.softcap > 0) cap_scores(s, call.softcap, kLog2e);
  if (first >= begin && first + Traits::kStageKeys <= end) return;
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t key = first + n * 8 + (lane & 3) * 2 + (j & 1);
      if (key < begin || key >= end) s[n][j] = -INFINITY;
    }
}

/// Takes 16 scored keys and their V into the running softmax. The first batch of V is loaded before the
/// exponentials.
template <class Traits, class T, class Io>
__device__ __forceinline__ void take_keys(DecodeState<Traits>& state, float (&s)[2][4], uint32_t stage) {
  constexpr int kSteps = Traits::kHeadDim / 16, kBatch = Traits::kBatch;
  const int lane = threadIdx.x & 31;
  const uint32_t row = ring_row<Traits>(stage + Traits::kStageKeys * Traits::kStride * 2,
                                        (lane & 7) + (lane >> 3 & 1) * 8, lane >> 4);
  uint32_t b[kBatch][4];
  const auto load = [&](int first_step) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      if (first_step + i < kSteps)
        device::ptx::load_matrix_x4_transposed(b[i], ring_step<Traits>(row, first_step + i));
  };
  load(0);
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
      for (int j = 0; j < 4; ++j)
        if (j < 2 || Traits::kRows == 16 || kTwoTerms<T, Io>)
          state.out[c][j] *= scale[Traits::kRows == 16 ? j >> 1 : 0];
  }
  uint32_t p[4] = {};
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    if constexpr (kTwoTerms<T, Io>) {
      device::split_terms<T>(s[n][0] * kWeightScale<T>, s[n][1] * kWeightScale<T>, p[2 * n], p[2 * n + 1]);
    } else {
      p[2 * n] = device::pack2<T>(s[n][0], s[n][1]);
      if constexpr (Traits::kRows == 16) p[2 * n + 1] = device::pack2<T>(s[n][2], s[n][3]);
    }
  }
#pragma unroll
  for (int first_step = 0; first_step < kSteps; first_step += kBatch) {
    if (first_step > 0) load(first_step);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int c = first_step + i;
      if (c >= kSteps) continue;
      device::mma<T>(state.out[2 * c], p, b[i][0], b[i][1]);
      device::mma<T>(state.out[2 * c + 1], p, b[i][2], b[i][3]);
    }
  }
}

/// This warp's query rows as the a of the matrix step; rows that do not exist are 0. Of 16-bit queries rows
/// g + 8 are asked for even where kRows is 8 and none is live: zeros that the compiler cannot know stay in
/// place, known ones are moved there each step.
template <class Traits, class T, class Io>
__device__ __forceinline__ void load_queries(uint32_t (&q)[Traits::kHeadDim / 16][4], const Io* rows,
                                             int live) {
  static_assert(!kTwoTerms<T, Io> || Traits::kRows == 8, "rows g + 8 hold second terms");
  const int g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3;
#pragma unroll
  for (int d = 0; d < Traits::kHeadDim / 16; ++d)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = g + (j & 1) * 8;
      const Io* const at = rows + row * Traits::kHeadDim + d * 16 + (j >> 1) * 8 + t * 2;
      if constexpr (!kTwoTerms<T, Io>) {
        q[d][j] = row < live ? *reinterpret_cast<const uint32_t*>(at) : 0;
      } else if ((j & 1) == 0) {
        const float2 two = row < live ? *reinterpret_cast<const float2*>(at) : float2{};
        device::split_terms<T>(two.x, two.y, q[d][j], q[d][j + 1]);
      }
    }
}

template <class Traits, class T, class Io>
__global__ __launch_bounds__(Traits::kThreads, Traits::kBlocksPerSm) void attention_decode_split(
    device::Upstream upstream, const __grid_constant__ DecodeMaps<Traits> maps,
    AttentionDecodeCall<T, Io> call) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ RingBarriers<Traits> barriers;
  const int warp = threadIdx.x >> 5;
  barriers.init();
  upstream.release_next();
  if (!call.lengths_settled) (void)upstream.wait();
  DecodePlan plan =
      plan_decode<Traits>(call, upstream, reinterpret_cast<int32_t*>(shared + Traits::kRingBytes));

  const uint32_t ring = device::ptx::shared_address(shared) + warp * Traits::kStages * Traits::kStageBytes;
  bool first_piece = true;
  [[maybe_unused]] uint32_t parities = 0;
  for (int32_t tile = plan.begin; tile < plan.end;) {
    const DecodePiece piece = plan.template piece_at<Traits>(call, upstream, tile);
    tile = piece.tile_end;
    const int32_t* const pages = call.pages + piece.sequence * call.table_stride;
    const int64_t head_offset = piece.kv_head * call.head_stride;
    const int32_t first = piece.first_key + warp * Traits::kStageKeys, last = piece.last_key;
    const auto copy = [&](int stage, int32_t key, int64_t offset) {  // this warp's 16 keys from `key` on
      const uint32_t place = ring + stage * Traits::kStageBytes;
      if constexpr (Traits::kBoxes) {
        if (key < last) copy_key_boxes<Traits>(place, maps, barriers, stage, offset, piece.kv_head);
      } else {
        if (key < last) copy_keys<Traits>(place, call, offset, key, last);
        device::ptx::copy_async_commit();
      }
    };
    const auto locate = [&](int32_t key) -> int64_t {
      if (key >= last) return 0;
      if constexpr (Traits::kBoxes)
        return key_box(call, upstream, pages, piece.sequence, key);
      else
        return key_offset<Traits>(call, upstream, pages, piece.sequence, key, last, head_offset);
    };
    // The first stages: before the wait those in which every key was written before this step.
    int64_t offsets[Traits::kStages - 1];
#pragma unroll
    for (int i = 0; i < Traits::kStages - 1; ++i) offsets[i] = locate(first + i * Traits::kTileKeys);
#pragma unroll
    for (int i = 0; i < Traits::kStages - 1; ++i) {
      const int32_t key = first + i * Traits::kTileKeys;
      if (first_piece && key < last && min(key + Traits::kStageKeys, last) > piece.end_key - call.unsettled)
        (void)upstream.wait();
      copy(i, key, offsets[i]);
    }
    const auto waited = upstream.wait();
    first_piece = false;
    uint32_t q[Traits::kHeadDim / 16][4];
    load_queries<Traits, T>(
        q, call.q.after(waited) + piece.sequence * call.q_stride + piece.head * Traits::kHeadDim, piece.rows);

    DecodeState<Traits> state;
    constexpr int32_t kAhead = (Traits::kStages - 1) * Traits::kTileKeys;
    int64_t next_offset = locate(first + kAhead);
    int stage = 0;
    for (int32_t key = first; key < last; key += Traits::kTileKeys) {
      if constexpr (Traits::kBoxes)
        barriers.wait(stage, parities);
      else
        device::ptx::copy_async_wait<Traits::kStages - 2>();
      __syncwarp();  // everybody's copies of this stage are here, and the one before is free
      copy(stage == 0 ? Traits::kStages - 1 : stage - 1, key + kAhead, next_offset);
      next_offset = locate(key + kAhead + Traits::kTileKeys);
      const uint32_t place = ring + stage * Traits::kStageBytes;
      // What cp.async brings of keys past the end are zeros.
      if ((Traits::kBoxes && key + Traits::kStageKeys > last) || key < piece.begin_key)
        clear_values<Traits>(
            shared + (place - device::ptx::shared_address(shared)) + Traits::kStageKeys * Traits::kStride * 2,
            piece.begin_key - key, last - key);
      float s[2][4];
      score_keys<Traits>(s, q, place, call, key, piece.begin_key, last);
      take_keys<Traits, T, Io>(state, s, place);
      stage = stage + 1 == Traits::kStages ? 0 : stage + 1;
    }
    if constexpr (!Traits::kBoxes) device::ptx::copy_async_wait<0>();
    if constexpr (kTwoTerms<T, Io>) {
#pragma unroll
      for (auto& columns : state.out) {
        columns[0] = (columns[0] + columns[2]) / kWeightScale<T>;
        columns[1] = (columns[1] + columns[3]) / kWeightScale<T>;
      }
    }
    finish_piece<Traits>(state, shared, call, waited, plan, piece);
  }
  const auto waited = upstream.wait();
  store_empty<Traits>(call, waited, plan);
}

template <class Traits, class T, class Io>
static Status launch_attention_decode(cudaStream_t stream, const AttentionDecodeCall<T, Io>& call,
                                      int multiprocessors) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      attention_decode_split<Traits, T, Io>, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of attention_decode_split"));
  DecodeMaps<Traits> maps;
  if constexpr (Traits::kBoxes) RIDGE_TRY(make_key_maps<Traits>(&maps, call));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(decode_blocks<Traits>(multiprocessors, call.groups));
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kRingBytes + static_cast<int>(round_up((call.batch + 1) * 4, 16));
  return device::launch_dependent(stream, shape, "attention_decode_split",
                                  attention_decode_split<Traits, T, Io>, maps, call);
}

}  // namespace ridge::cuda
