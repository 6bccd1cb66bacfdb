#pragma once
// gemm_tokens: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ for 2 … 64 tokens. 16-bit in, f32 sums. Limit:
// read bandwidth of w, so everything here serves an unbroken stream of it.
//
// The matrix step has 16 rows of w as its a and 8 tokens as its b. Each warp copies (cp.async) its own rows
// of w into a ring of its own, kStages deep, so the ring needs no block barrier; 16-byte places are swizzled
// so that ldmatrix hits eight different banks. x goes through shared memory in chunks of kDepth, two of them,
// rows padded by 16 bytes. A block owns kRows rows; kWarpsRows x kWarpsDepth warps divide its rows and its
// depth. The kCluster blocks of a cluster own the same rows and take chunks of `in` in turns. Sums meet in
// shared memory, warps first, then blocks, each in the order of depth, so the result does not depend on
// timing. The blocks divide that work by rows. Bytes of shared memory an SM for each byte of w at 64 tokens:
// 1 in, 1 out, 4 / kTiles of x.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/mma.cuh"
#include "kernels/linear_call.cuh"

namespace ridge::cuda {

template <int kTokensIn, int kTilesIn, int kWarpsRowsIn, int kWarpsDepthIn, int kClusterIn, int kDepthIn,
          int kUnrollIn, int kStagesIn, int kBlocksPerSmIn>
struct GemmTokensTraits {
  static constexpr int kTokens = kTokensIn;  // of a block; a multiple of 8
  static constexpr int kTiles = kTilesIn;    // of 16 rows, of a warp
  static constexpr int kWarpsRows = kWarpsRowsIn, kWarpsDepth = kWarpsDepthIn, kCluster = kClusterIn;
  static constexpr int kDepth = kDepthIn;    // of `in`, of a chunk of x
  static constexpr int kUnroll = kUnrollIn;  // of 32 of depth, of a stage
  static constexpr int kStages = kStagesIn;  // of the ring
  static constexpr int kBlocksPerSm = kBlocksPerSmIn;
  static constexpr int kThreads = kWarpsRows * kWarpsDepth * 32;
  static constexpr int kRows = kWarpsRows * kTiles * 16;
  static constexpr int kStride = kDepth + 8;  // elements between tokens in shared memory
  static constexpr int kChunkStages = kDepth / kWarpsDepth / (32 * kUnroll);  // of a warp in a chunk
  static constexpr int kStageBytes = kUnroll * kTiles * 2 * kThreads * 16;
  static constexpr int kChunkBytes = kTokens * kStride * 2;
  static constexpr int kSumStride = kRows + 4;  // floats between tokens of a block's sums
  static constexpr int kSumBytes = kWarpsDepth * kTokens * kSumStride * 4;
  static constexpr int kCopyBytes = 2 * kChunkBytes + kStages * kStageBytes;
  static constexpr int kSharedBytes = kCopyBytes > kSumBytes ? kCopyBytes : kSumBytes;
  static_assert(kChunkStages >= kStages - 1, "a chunk of x must be older than the ring when it is used");
  static_assert(kDepth % (kWarpsDepth * 32 * kUnroll) == 0 && (kDepth * 2) % 128 == 0 && kTokens % 8 == 0);
  static_assert(kRows % (4 * kCluster) == 0 && kSharedBytes <= 227 * 1024);
};

/// Starts the copy of a lane's part of w for kUnroll steps from k on: rows g and g + 8 of each tile.
template <class Traits, class T>
__device__ __forceinline__ void copy_weights(uint32_t place, const T* const (&row)[Traits::kTiles][2],
                                             int64_t k, int64_t in) {
#pragma unroll
  for (int m = 0; m < Traits::kTiles; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int u = 0; u < Traits::kUnroll; ++u) {
        const bool live = k + 32 * u < in;
        device::ptx::copy_async_16_l2_256(place + ((u * Traits::kTiles + m) * 2 + h) * Traits::kThreads * 16,
                                          row[m][h] + (live ? k + 32 * u : 0), live ? 16 : 0);
      }
}

/// Starts the copy of x[0 .. kTokens, first .. first + kDepth] into a chunk; what lies outside x becomes 0.
template <class Traits, class T, class Y>
__device__ __forceinline__ void copy_chunk(uint32_t chunk, const T* x, const LinearCall<T, T, Y>& call,
                                           int64_t token0, int64_t first) {
  constexpr int kVectors = Traits::kDepth / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < Traits::kTokens * kVectors; i += Traits::kThreads) {
    const int token = i / kVectors;
    const int64_t k = first + i % kVectors * 8;
    const bool live = token0 + token < call.tokens && k < call.in;
    device::ptx::copy_async_16(chunk + (token * Traits::kStride + i % kVectors * 8) * 2,
                               live ? x + (token0 + token) * call.x_stride + k : x, live ? 16 : 0);
  }
}

/// This lane's 16 bytes of a tile of 8 rows x 32 of depth: row g, places t ^ (g / 2), so that 8 rows of one
/// place lie in different banks.
__device__ __forceinline__ uint32_t tile_place(int row, int place) {
  return (row * 4 + (place ^ (row >> 1 & 3))) * 16;
}

/// Multiplies one stage of the warp's ring with the tokens of a chunk. `a`: the stage, this lane's ldmatrix
/// row in it; `b`: this lane's ldmatrix row of the chunk at the stage's first k. A step waits for the one
/// before it on the same sums, so all tiles take the first half of depth before any takes the second.
template <class Traits, class T>
__device__ __forceinline__ void multiply_stage(float (&sum)[Traits::kTiles][Traits::kTokens / 8][4],
                                               uint32_t a, uint32_t b) {
  constexpr int kTokenTiles = Traits::kTokens / 8;
#pragma unroll
  for (int u = 0; u < Traits::kUnroll; ++u) {
    uint32_t w[2][Traits::kTiles][4], x[kTokenTiles][4];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int m = 0; m < Traits::kTiles; ++m)
        device::ptx::load_matrix_x4(w[half][m],
                                    (a ^ (half * 32)) + (u * Traits::kTiles + m) * 2 * Traits::kThreads * 16);
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n)
      device::ptx::load_matrix_x4(x[n], b + (n * 8 * Traits::kStride + u * 32) * 2);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
        for (int m = 0; m < Traits::kTiles; ++m)
          device::mma<T>(sum[m][n], w[half][m], x[n][2 * half], x[n][2 * half + 1]);
  }
}

/// Adds the partial sums of warps and blocks, then writes this block's share of the rows.
template <class Traits, Gate kGate = Gate::kNone, class T, class Y>
__device__ __forceinline__ void store_sums(const float* sums, const LinearCall<T, T, Y>& call,
                                           device::Waited waited, int64_t token0, int64_t row0) {
  constexpr int kRows = kGate == Gate::kNone ? Traits::kRows : Traits::kRows / 2;  // of y
  constexpr int kShare = kRows / Traits::kCluster, kQuads = kShare / 4;
  const int rank = Traits::kCluster > 1 ? static_cast<int>(device::ptx::cluster_rank()) : 0;
  for (int i = threadIdx.x; i < Traits::kTokens * kQuads; i += Traits::kThreads) {
    const int token = i / kQuads, r = rank * kShare + i % kQuads * 4;
    if (token0 + token >= call.tokens) break;
    const auto sums_of = [&](int first, float(&total)[4]) {
#pragma unroll
      for (int block = 0; block < Traits::kCluster; ++block)
#pragma unroll
        for (int warp = 0; warp < Traits::kWarpsDepth; ++warp) {
          const float* const at = sums + (warp * Traits::kTokens + token) * Traits::kSumStride + first;
          const float4 v = Traits::kCluster > 1 ? device::ptx::load_cluster(device::ptx::cluster_address(
                                                      device::ptx::shared_address(at), block))
                                                : *reinterpret_cast<const float4*>(at);
          total[0] += v.x, total[1] += v.y, total[2] += v.z, total[3] += v.w;
        }
    };
    float total[4] = {}, up[4] = {};
    sums_of(r, total);
    if constexpr (kGate != Gate::kNone) sums_of(r + kRows, up);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t row = row0 + r + j;
      if (row >= call.out) break;
      if constexpr (kGate == Gate::kNone)
        store_output(call, waited, token0 + token, row, total[j]);
      else
        store_gated<kGate>(call, waited, token0 + token, row, total[j], up[j]);
    }
  }
}

template <class Traits, class T, class Y>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void gemm_tokens(device::Upstream upstream,
                                                                    LinearCall<T, T, Y> call) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kStages = Traits::kStages, kChunkStages = Traits::kChunkStages;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int warp_rows = warp / Traits::kWarpsDepth, warp_depth = warp % Traits::kWarpsDepth;
  const int64_t row0 = int64_t{blockIdx.x} / Traits::kCluster * Traits::kRows,
                token0 = int64_t{blockIdx.y} * Traits::kTokens;
  const int64_t chunks = ceil_div(call.in, Traits::kDepth);
  const int64_t rank = blockIdx.x % Traits::kCluster,
                my_chunks = rank < chunks ? (chunks - 1 - rank) / Traits::kCluster + 1 : 0;

  const T* row[Traits::kTiles][2];
#pragma unroll
  for (int m = 0; m < Traits::kTiles; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h)  // rows past the end read the last one; their sums are dropped
      row[m][h] = call.w +
                  min(row0 + (warp_rows * Traits::kTiles + m) * 16 + h * 8 + g, call.out - 1) * call.w_stride;
  const int lane_k = warp_depth * (Traits::kDepth / Traits::kWarpsDepth) + t * 8;  // in a chunk

  // Stages are numbered through this block's chunks; the copies of w run ahead across their borders.
  const int32_t stages = static_cast<int32_t>(my_chunks) * kChunkStages;
  const auto chunk_k = [&](int64_t i) { return (rank + i * Traits::kCluster) * Traits::kDepth; };
  const uint32_t ring = device::ptx::shared_address(shared) + 2 * Traits::kChunkBytes + warp * 512;
  const auto copy_stage = [&](int32_t stage, int slot) {
    if (stage < stages) {
      const int64_t k =
          chunk_k(stage / kChunkStages) + lane_k + stage % kChunkStages * (32 * Traits::kUnroll);
      copy_weights<Traits>(ring + slot * Traits::kStageBytes + tile_place(g, t), row, k, call.in);
    }
    device::ptx::copy_async_commit();
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) copy_stage(s, s);
  if (stages < kStages) upstream.release_next();
  const auto waited = upstream.wait();
  const T* const x = call.x.after(waited);

  float sum[Traits::kTiles][Traits::kTokens / 8][4] = {};
  if (stages > 0) copy_chunk<Traits>(device::ptx::shared_address(shared), x, call, token0, chunk_k(0));
  device::ptx::copy_async_commit();
  device::ptx::copy_async_wait<0>();
  const uint32_t lane_row = (lane >> 3 & 1) * Traits::kThreads * 16 + tile_place(lane & 7, lane >> 4);
  int slot = 0;
  int32_t stage = 0;
  for (int64_t chunk = 0; chunk < my_chunks; ++chunk) {
    const int half = static_cast<int>(chunk) & 1;
    device::ptx::copy_async_wait<kStages - 2>();  // x of this chunk is older than the ring
    __syncthreads();                              // it is here, and everybody is done with the chunk before
    if (chunk + 1 < my_chunks)
      copy_chunk<Traits>(device::ptx::shared_address(shared) + (half ^ 1) * Traits::kChunkBytes, x, call,
                         token0, chunk_k(chunk + 1));
    const uint32_t b = device::ptx::shared_address(shared) + half * Traits::kChunkBytes +
                       ((lane & 7) * Traits::kStride + warp_depth * (Traits::kDepth / Traits::kWarpsDepth) +
                        (lane >> 3) * 8) *
                           2;
#pragma unroll 2
    for (int s = 0; s < kChunkStages; ++s, ++stage) {
      device::ptx::copy_async_wait<kStages - 2>();
      __syncwarp();  // every lane's part is here, and the stage before is free
      copy_stage(stage + kStages - 1, slot == 0 ? kStages - 1 : slot - 1);
      if (stage + kStages == stages) upstream.release_next();
      multiply_stage<Traits, T>(sum, ring + slot * Traits::kStageBytes + lane_row,
                                b + s * 64 * Traits::kUnroll);
      slot = slot + 1 == kStages ? 0 : slot + 1;
    }
  }
  __syncthreads();  // the chunks' memory becomes the sums'

  float* const sums = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int m = 0; m < Traits::kTiles; ++m)
#pragma unroll
    for (int n = 0; n < Traits::kTokens / 8; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int token = n * 8 + t * 2 + (j & 1),
                  r = (warp_rows * Traits::kTiles + m) * 16 + g + (j >> 1) * 8;
        sums[(warp_depth * Traits::kTokens + token) * Traits::kSumStride + r] = sum[m][n][j];
      }
  if constexpr (Traits::kCluster > 1) {
    device::ptx::cluster_arrive();
    device::ptx::cluster_wait();
  } else {
    __syncthreads();
  }
  store_sums<Traits>(sums, call, waited, token0, row0);
  if constexpr (Traits::kCluster > 1) {  // others still read this block's sums
    device::ptx::cluster_arrive();
    device::ptx::cluster_wait();
  }
}

template <class Traits, class T, class Y>
static Status launch_gemm_tokens(cudaStream_t stream, const LinearCall<T, T, Y>& call) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      gemm_tokens<Traits, T, Y>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemm_tokens"));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(ceil_div(call.out, Traits::kRows) * Traits::kCluster);
  shape.grid.y = static_cast<unsigned>(ceil_div(call.tokens, Traits::kTokens));
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  shape.cluster = Traits::kCluster;
  return device::launch_dependent(stream, shape, "gemm_tokens", gemm_tokens<Traits, T, Y>, call);
}

}  // namespace ridge::cuda
