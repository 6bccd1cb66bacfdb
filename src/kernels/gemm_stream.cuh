#pragma once
// gemm_stream: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ for 1 … 8 tokens, as one unbroken stream of w.
// 16-bit in, f32 sums. Limit: read bandwidth of w.
//
// The matrix step (16 rows of w, 8 tokens) also adds over lanes, so that a row costs no shuffles; with one
// token seven columns idle, which nobody notices. kCluster blocks share tiles of 16 rows, tile after tile, so
// that all SMs walk through memory side by side; warps and blocks divide `in` in turns of kUnroll x 32, so
// that together they read each row from left to right. A lane keeps its part of x in registers for the whole
// launch, and copies (cp.async) the 16 bytes of w that it will hold in `a` into a place of the ring that only
// it reads: no barrier, no swizzle. Both operands permute k alike (device/mma.cuh). A tile's sums meet in
// shared memory, warps first, then blocks, in the order of depth. In flight on an SM: blocks x (kStages - 1)
// x kUnroll x kWarps KiB. The next launch is released at the start: each of its blocks may then begin, and
// ask for its first stages, as soon as a multiprocessor has room, instead of all of them only when the
// slowest block here has asked for its last bytes.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/mma.cuh"
#include "kernels/linear_call.cuh"
#include "kernels/rope_end.cuh"

namespace ridge::cuda {

template <int kWarpsIn, int kStepsIn, int kUnrollIn, int kStagesIn, int kClusterIn, int kBlocksPerSmIn>
struct GemmStreamTraits {
  static constexpr int kWarps = kWarpsIn, kSteps = kStepsIn, kUnroll = kUnrollIn, kStages = kStagesIn;
  static constexpr int kCluster = kClusterIn, kBlocksPerSm = kBlocksPerSmIn, kThreads = kWarps * 32;
  static constexpr int kRows = 16, kTokens = 8;
  // Rows of y that a tile of kRows rows of w makes.
  static constexpr int rows_of_tile(Gate gate) { return gate == Gate::kNone ? kRows : kRows / 2; }
  static constexpr int kTileStages = kSteps / kUnroll;            // at most, of a tile
  static constexpr int kTurn = kUnroll * 32 * kWarps * kCluster;  // of `in`, of all blocks, in a stage
  static constexpr int kWidth = kTurn * kTileStages;              // the longest `in`
  static constexpr int kStageBytes = kUnroll * 2 * kThreads * 16, kRingBytes = kStages * kStageBytes;
  static constexpr int kSumStride = kRows + 4;  // floats between tokens: no bank twice
  static constexpr int kSumFloats = kWarps * kTokens * kSumStride;
  static constexpr int kSharedBytes = kRingBytes + 2 * kSumFloats * 4;
  static_assert(kSteps % kUnroll == 0 && kThreads >= 128 && kStages >= 2);
};

/// Where a block's copies of w have got to.
template <class Traits>
struct StreamCursor {
  int64_t tile;
  int32_t stage = 0;
};

/// Row g of the upper (h = 0) or lower half of a tile. Rows past the end are the last one; their sums are
/// dropped.
template <class Traits, Gate kGate, class T, class Y>
__device__ __forceinline__ const T* tile_row(const LinearCall<T, T, Y>& call, int64_t tile, int h, int g) {
  const T* const matrix = kGate != Gate::kNone && h == 1 ? call.w_up : call.w;
  const int64_t first = tile * Traits::rows_of_tile(kGate) + (kGate == Gate::kNone ? h * 8 : 0);
  return matrix + min(first + g, call.out - 1) * call.w_stride;
}

/// Starts the copy of this lane's part of one stage (rows g and g + 8 of the tile; with a gate row g of
/// either matrix) and moves on.
template <class Traits, Gate kGate, class T, class Y>
__device__ __forceinline__ void copy_tile_stage(uint32_t place, const LinearCall<T, T, Y>& call,
                                                StreamCursor<Traits>& cursor, int32_t lane_k,
                                                int32_t tile_stages, int64_t tiles, int64_t clusters) {
  if (cursor.tile < tiles) {
    const int64_t k = int64_t{cursor.stage} * Traits::kTurn + lane_k;
    const int g = threadIdx.x >> 2 & 7;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const T* const row = tile_row<Traits, kGate>(call, cursor.tile, h, g);
#pragma unroll
      for (int u = 0; u < Traits::kUnroll; ++u) {
        const bool live = k + 32 * u < call.in;
        device::ptx::copy_async_16_l2_256(place + (u * 2 + h) * Traits::kThreads * 16,
                                          row + (live ? k + 32 * u : 0), live ? 16 : 0);
      }
    }
    if (++cursor.stage == tile_stages) cursor.stage = 0, cursor.tile += clusters;
  }
  device::ptx::copy_async_commit();
}

/// Adds a tile's sums over warps and blocks and writes this block's share of its rows; `added`: the residual
/// of this thread's output. Whole warps call it.
template <class Traits, Gate kGate, class End, class T, class Y>
__device__ __forceinline__ void store_tile(const float* sums, const LinearCall<T, T, Y>& call, const End& end,
                                           unsigned char* table, device::Waited waited, int64_t tile,
                                           float added) {
  constexpr int kTileRows = Traits::rows_of_tile(kGate), kShare = kTileRows / Traits::kCluster;
  const int rank = Traits::kCluster > 1 ? static_cast<int>(device::ptx::cluster_rank()) : 0;
  const int token = threadIdx.x / kShare, r = rank * kShare + threadIdx.x % kShare;
  const int64_t row = tile * kTileRows + r;
  const bool live = token < call.tokens && row < call.out;
  if (!End::kTurns && !live) return;
  const auto sum_of = [&](int tile_row) {
    float sum = 0;
#pragma unroll
    for (int block = 0; block < Traits::kCluster; ++block)
#pragma unroll
      for (int warp = 0; warp < Traits::kWarps; ++warp) {
        const float* const at = sums + (warp * Traits::kTokens + token) * Traits::kSumStride + tile_row;
        sum += Traits::kCluster > 1 ? device::ptx::load_cluster_float(device::ptx::cluster_address(
                                          device::ptx::shared_address(at), block))
                                    : *at;
      }
    return sum;
  };
  if constexpr (End::kTurns) {
    float own = sum_of(r);
    if (call.bias && live) own += device::to_float(call.bias[row]);
    const float other = __shfl_xor_sync(0xffffffffu, own, 1);
    if (live) end.store(waited, table, token, static_cast<int>(row), own, other);
  } else if constexpr (kGate == Gate::kNone)
    store_sum(call, waited, token, row, sum_of(r), added);
  else
    store_gated<kGate>(call, waited, token, row, sum_of(r), sum_of(r + kTileRows));
}

/// The residual of the output that this thread stores of a tile, asked for before the tile is multiplied.
template <class Traits, class T, class Y>
__device__ __forceinline__ float residual_of_tile(const LinearCall<T, T, Y>& call, device::Waited waited,
                                                  int64_t tile) {
  constexpr int kShare = Traits::kRows / Traits::kCluster;
  const Y* const residual = call.residual.after(waited);
  if (!residual) return 0;
  const int rank = Traits::kCluster > 1 ? static_cast<int>(device::ptx::cluster_rank()) : 0;
  const int token = threadIdx.x / kShare;
  const int64_t row = tile * Traits::kRows + rank * kShare + threadIdx.x % kShare;
  if (token >= call.tokens || row >= call.out) return 0;
  return device::to_float(residual[token * call.residual_stride + row]);
}

template <class Traits, class T, class Y, Gate kGate, class End>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void gemm_stream(device::Upstream upstream,
                                                                    LinearCall<T, T, Y> call, End end) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kStages = Traits::kStages, kTileStages = Traits::kTileStages, kUnroll = Traits::kUnroll;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int rank = blockIdx.x % Traits::kCluster;
  const int64_t tiles = ceil_div(call.out, Traits::rows_of_tile(kGate)),
                clusters = gridDim.x / Traits::kCluster;
  const int32_t lane_k = (rank * Traits::kWarps + warp) * kUnroll * 32 + t * 8;
  const int32_t tile_stages = static_cast<int32_t>(ceil_div(call.in, Traits::kTurn));
  const uint32_t ring = device::ptx::shared_address(shared) + threadIdx.x * 16;
  float* const sums =
      reinterpret_cast<float*>(shared + Traits::kRingBytes);  // [2][kWarps, kTokens, kSumStride]

  upstream.release_next();
  StreamCursor<Traits> cursor{blockIdx.x / Traits::kCluster};
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s)
    copy_tile_stage<Traits, kGate>(ring + s * Traits::kStageBytes, call, cursor, lane_k, tile_stages, tiles,
                                   clusters);
  unsigned char* const table = shared + Traits::kSharedBytes;
  if constexpr (End::kTurns)
    if (end.settled) end.prepare(upstream, table, static_cast<int>(call.tokens));
  const auto waited = upstream.wait();
  if constexpr (End::kTurns)
    if (!end.settled) end.prepare(upstream, table, static_cast<int>(call.tokens));
  uint4 x[kTileStages][kUnroll];
#pragma unroll
  for (int j = 0; j < kTileStages; ++j)
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t k = int64_t{j} * Traits::kTurn + lane_k + 32 * u;
      x[j][u] = g < call.tokens && k < call.in
                    ? *reinterpret_cast<const uint4*>(call.x.after(waited) + g * call.x_stride + k)
                    : uint4{};
    }

  int slot = 0, half = 0;
  for (int64_t tile = blockIdx.x / Traits::kCluster; tile < tiles; tile += clusters, half ^= 1) {
    const float added =
        kGate == Gate::kNone && !End::kTurns ? residual_of_tile<Traits>(call, waited, tile) : 0;
    float sum[2][4] = {};
#pragma unroll
    for (int j = 0; j < kTileStages; ++j) {
      if (j >= tile_stages) break;
      device::ptx::copy_async_wait<kStages - 2>();
      const unsigned char* const a = shared + slot * Traits::kStageBytes + threadIdx.x * 16;
      uint4 w[kUnroll][2];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          w[u][h] = *reinterpret_cast<const uint4*>(a + (u * 2 + h) * Traits::kThreads * 16);
      copy_tile_stage<Traits, kGate>(ring + (slot == 0 ? kStages - 1 : slot - 1) * Traits::kStageBytes, call,
                                     cursor, lane_k, tile_stages, tiles, clusters);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const uint32_t first[4] = {w[u][0].x, w[u][1].x, w[u][0].y, w[u][1].y},
                       second[4] = {w[u][0].z, w[u][1].z, w[u][0].w, w[u][1].w};
        device::mma<T>(sum[0], first, x[j][u].x, x[j][u].y);
        device::mma<T>(sum[1], second, x[j][u].z, x[j][u].w);
      }
      slot = slot + 1 == kStages ? 0 : slot + 1;
    }
    float* const mine = sums + half * Traits::kSumFloats + warp * Traits::kTokens * Traits::kSumStride;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      mine[(t * 2 + (i & 1)) * Traits::kSumStride + g + (i >> 1) * 8] = sum[0][i] + sum[1][i];
    if constexpr (Traits::kCluster > 1) {
      device::ptx::cluster_arrive();
      device::ptx::cluster_wait();
    } else {
      __syncthreads();
    }
    // The other half of `sums` is written next; this one not before everybody has passed the next barrier.
    if (threadIdx.x < Traits::kTokens * Traits::rows_of_tile(kGate) / Traits::kCluster)
      store_tile<Traits, kGate>(sums + half * Traits::kSumFloats, call, end, table, waited, tile, added);
  }
  if constexpr (Traits::kCluster > 1) {  // others still read this block's sums
    device::ptx::cluster_arrive();
    device::ptx::cluster_wait();
  }
}

template <class Traits, Gate kGate, class T, class Y, class End>
static Status launch_gemm_stream_to(cudaStream_t stream, const LinearCall<T, T, Y>& call, int multiprocessors,
                                    const End& end) {
  constexpr int kMostBytes =
      Traits::kSharedBytes + (End::kTurns ? static_cast<int>(kTurnTokens * (kTurnPairs * 8 + 16)) : 0);
  static const cudaError_t allowed = cudaFuncSetAttribute(
      gemm_stream<Traits, T, Y, kGate, End>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemm_stream"));
  if (call.in > Traits::kWidth)
    return declined("gemm_stream: in is ", call.in, ", this kernel takes up to ", Traits::kWidth);
  if (call.tokens > Traits::kTokens)
    return declined("gemm_stream: tokens is ", call.tokens, ", this kernel takes up to 8");
  device::LaunchShape shape;
  const int64_t clusters = min(ceil_div(call.out, Traits::rows_of_tile(kGate)),
                               int64_t{multiprocessors} * Traits::kBlocksPerSm / Traits::kCluster);
  shape.grid.x = static_cast<unsigned>(clusters * Traits::kCluster);
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes + end.table_bytes();
  shape.cluster = Traits::kCluster;
  return device::launch_dependent(stream, shape, "gemm_stream", gemm_stream<Traits, T, Y, kGate, End>, call,
                                  end);
}
template <class Traits, class T, class Y, Gate kGate = Gate::kNone>
static Status launch_gemm_stream(cudaStream_t stream, const LinearCall<T, T, Y>& call, int multiprocessors) {
  return launch_gemm_stream_to<Traits, kGate>(stream, call, multiprocessors, RowsEnd{});
}

}  // namespace ridge::cuda
