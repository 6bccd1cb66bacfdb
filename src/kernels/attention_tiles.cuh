#pragma once
// attention_tiles: exact attention over paged K and V in f32, for prefill and decode: any head_dim up to the
// class, any ratio of heads, page size, stride and type of page (docs/kernels/attention_tiles.md). Limit: f32
// FMA.
//
// A block has kRows query rows of one sequence and KV head (row = token of the chunk x query head of the
// group, heads innermost) and walks over the keys in tiles of kKeys, which start at multiples of kKeys. K and
// V of a tile are widened to f32 in shared memory. Threads form rows of 16: thread (ty, tx) has kRows /
// (threads / 16) query rows, keys tx + 16 j of a tile and columns 4 tx + 64 c of the output, so softmax and
// the exchange of probabilities stay within half a warp. A row's answer does not depend on the rows beside
// it: a tile in which it sees no key changes nothing. With few rows the tiles of a sequence are divided among
// gridDim.x blocks, whose sums the last one to arrive joins in the order of the keys
// (attention_tiles_join.cuh).

#include "kernels/attention_tiles_join.cuh"

namespace ridge::cuda {

/// Keys that a thread's rows see: [first[i], last[i]).
template <class Traits>
struct SeenKeys {
  int first[Traits::kRowsOfThread], last[Traits::kRowsOfThread];
  __device__ bool has(int i, int key) const { return key >= first[i] && key < last[i]; }
};

/// Scores of the block's rows against a tile, base 2; -inf where a row does not see the key.
template <class Traits>
__device__ __forceinline__ void score_tile(float (&s)[Traits::kRowsOfThread][Traits::kKeysOfThread],
                                           const float* q, const float* k, const AttentionTilesCall& call,
                                           const SeenKeys<Traits>& seen, int first_key) {
  const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
#pragma unroll
  for (int i = 0; i < Traits::kRowsOfThread; ++i)
#pragma unroll
    for (int j = 0; j < Traits::kKeysOfThread; ++j) s[i][j] = 0;
  const int quads = static_cast<int>(call.head_dim + 3) / 4;
  for (int d = 0; d < quads; ++d) {
    float4 a[Traits::kRowsOfThread];
#pragma unroll
    for (int i = 0; i < Traits::kRowsOfThread; ++i)
      a[i] = *reinterpret_cast<const float4*>(q + (ty * Traits::kRowsOfThread + i) * Traits::kStride + 4 * d);
#pragma unroll
    for (int j = 0; j < Traits::kKeysOfThread; ++j) {
      const float4 b = *reinterpret_cast<const float4*>(k + (tx + 16 * j) * Traits::kStride + 4 * d);
#pragma unroll
      for (int i = 0; i < Traits::kRowsOfThread; ++i)
        s[i][j] = fmaf(a[i].w, b.w, fmaf(a[i].z, b.z, fmaf(a[i].y, b.y, fmaf(a[i].x, b.x, s[i][j]))));
    }
  }
  constexpr float kLog2e = 1.44269504f;
#pragma unroll
  for (int i = 0; i < Traits::kRowsOfThread; ++i)
#pragma unroll
    for (int j = 0; j < Traits::kKeysOfThread; ++j) {
      float v = s[i][j] * call.scale;
      if (call.softcap > 0) v = call.softcap * tanhf(v / call.softcap);
      s[i][j] = seen.has(i, first_key + tx + 16 * j) ? v * kLog2e : -INFINITY;
    }
}

/// Takes a scored tile into the running softmax; the probabilities go to `p`, [kRows, kKeys + 4].
template <class Traits>
__device__ __forceinline__ void weigh_tile(TileState<Traits>& state,
                                           const float (&s)[Traits::kRowsOfThread][Traits::kKeysOfThread],
                                           float* p) {
  const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
#pragma unroll
  for (int i = 0; i < Traits::kRowsOfThread; ++i) {
    float top = s[i][0];
#pragma unroll
    for (int j = 1; j < Traits::kKeysOfThread; ++j) top = fmaxf(top, s[i][j]);
    top = fmaxf(state.top[i], device::warp_reduce<device::Max, 16>(top));
    const float base = top == -INFINITY ? 0 : top, scale = device::ptx::exp2_approx(state.top[i] - base);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < Traits::kKeysOfThread; ++j) {
      const float weight = device::ptx::exp2_approx(s[i][j] - base);
      p[(ty * Traits::kRowsOfThread + i) * (Traits::kKeys + 4) + tx + 16 * j] = weight;
      sum += weight;
    }
    state.top[i] = top;
    state.sum[i] = fmaf(state.sum[i], scale, device::warp_reduce<device::Sum, 16>(sum));
#pragma unroll
    for (int c = 0; c < Traits::kQuads; ++c)
#pragma unroll
      for (int e = 0; e < 4; ++e) state.out[i][c][e] *= scale;
  }
  __syncwarp();
}

/// out += p · V. kMasked: keys that a row does not see are left out, whatever their values are.
template <class Traits, bool kMasked>
__device__ __forceinline__ void add_values(TileState<Traits>& state, const float* p, const float* v,
                                           const SeenKeys<Traits>& seen, int first_key, int keys,
                                           int columns) {
  const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
  for (int key = 0; key < keys; ++key) {
    float weight[Traits::kRowsOfThread];
#pragma unroll
    for (int i = 0; i < Traits::kRowsOfThread; ++i)
      weight[i] = p[(ty * Traits::kRowsOfThread + i) * (Traits::kKeys + 4) + key];
#pragma unroll
    for (int c = 0; c < Traits::kQuads; ++c) {
      if (64 * c >= columns) break;
      const float4 value = *reinterpret_cast<const float4*>(v + key * Traits::kStride + 64 * c + 4 * tx);
#pragma unroll
      for (int i = 0; i < Traits::kRowsOfThread; ++i) {
        if (kMasked && !seen.has(i, first_key + key)) continue;
        state.out[i][c][0] = fmaf(weight[i], value.x, state.out[i][c][0]);
        state.out[i][c][1] = fmaf(weight[i], value.y, state.out[i][c][1]);
        state.out[i][c][2] = fmaf(weight[i], value.z, state.out[i][c][2]);
        state.out[i][c][3] = fmaf(weight[i], value.w, state.out[i][c][3]);
      }
    }
  }
}

/// The block's query rows, zeros beyond head_dim and for rows that do not exist.
template <class Traits>
__device__ __forceinline__ void load_rows(float* shared, const AttentionTilesCall& call, const float* q,
                                          const TileRows& rows) {
  for (int i = threadIdx.x; i < Traits::kRows * Traits::kStride; i += Traits::kThreads) {
    const int row = i / Traits::kStride, column = i % Traits::kStride;
    const int64_t at = rows.begin + row;
    shared[i] = at < rows.end && column < call.head_dim
                    ? q[(rows.first_row + at / call.ratio) * call.q_stride +
                        (rows.kv_head * call.ratio + at % call.ratio) * call.q_head_stride + column]
                    : 0;
  }
}

template <class Traits>
__global__ __launch_bounds__(Traits::kThreads) void attention_tiles(device::Upstream upstream,
                                                                    AttentionTilesCall call) {
  extern __shared__ __align__(128) float tile_memory[];
  float* const q = tile_memory;
  float* const k = q + Traits::kRows * Traits::kStride;
  float* const v = k + Traits::kKeys * Traits::kStride;
  float* const p = v + Traits::kKeys * Traits::kStride;
  int2* const where = reinterpret_cast<int2*>(p + Traits::kRows * (Traits::kKeys + 4));
  const int head_dim = static_cast<int>(call.head_dim);
  upstream.release_next();
  const auto waited = upstream.wait();
  const TileRows rows = find_rows<Traits>(call, upstream, waited, blockIdx.x, blockIdx.y);
  if (rows.sequence < 0) return;
  load_rows<Traits>(q, call, call.q.after(waited), rows);
  // The dot products read columns up to the next multiple of 4.
  for (int i = threadIdx.x; i < Traits::kKeys * 4; i += Traits::kThreads)
    k[i / 4 * Traits::kStride + head_dim + i % 4] = 0;

  SeenKeys<Traits> seen;
  TileState<Traits> state;
#pragma unroll
  for (int i = 0; i < Traits::kRowsOfThread; ++i) {
    const int64_t at = rows.begin + (threadIdx.x >> 4) * Traits::kRowsOfThread + i;
    const int64_t position = at < rows.end ? rows.first_position + at / call.ratio : -1;
    seen.last[i] = static_cast<int>(max(position + 1, int64_t{0}));
    seen.first[i] = call.window > 0 ? static_cast<int>(max(position + 1 - call.window, int64_t{0})) : 0;
    state.top[i] = -INFINITY;
  }
  const TileRange range = tiles_of<Traits>(call, rows);
  for (int tile = range.begin; tile < range.end; ++tile) {
    const int first_key = tile * Traits::kKeys;
    const int keys = static_cast<int>(min(int64_t{Traits::kKeys}, range.last_key - first_key));
    __syncthreads();  // the tile before is used up
    for (int i = threadIdx.x; i < Traits::kKeys; i += Traits::kThreads)
      where[i] = i < keys ? place_of(call, upstream, waited, rows.sequence, first_key + i) : int2{-1, 0};
    __syncthreads();
    load_side<Traits>(k, call.k, where, rows.kv_head, head_dim);
    load_side<Traits>(v, call.v, where, rows.kv_head, head_dim);
    __syncthreads();
    float s[Traits::kRowsOfThread][Traits::kKeysOfThread];
    score_tile<Traits>(s, q, k, call, seen, first_key);
    weigh_tile<Traits>(state, s, p);
    bool whole = true;  // every row sees every key
#pragma unroll
    for (int i = 0; i < Traits::kRowsOfThread; ++i)
      whole = whole && first_key >= seen.first[i] && first_key + keys <= seen.last[i];
    if (whole)
      add_values<Traits, false>(state, p, v, seen, first_key, keys, head_dim);
    else
      add_values<Traits, true>(state, p, v, seen, first_key, keys, head_dim);
    __syncwarp();
  }
  finish_rows<Traits>(state, call, waited, rows, range);
}

template <class Traits>
static Status launch_attention_tiles(cudaStream_t stream, const AttentionTilesCall& call, dim3 grid) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      attention_tiles<Traits>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of attention_tiles"));
  device::LaunchShape shape;
  shape.grid = grid;
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "attention_tiles", attention_tiles<Traits>, call);
}

}  // namespace ridge::cuda
