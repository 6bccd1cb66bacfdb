#pragma once
// gemm_rows: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ for 1 … 8 tokens, whole rows of w at a time. 16-bit
// in, f32 sums. Limit: read bandwidth of w.
//
// One block of kWarps warps an SM; a tile is 8 rows of w (with a gate 4 of either matrix), block b has tiles
// b, b + blocks, …. A warp has 256 of `in`, of which it copies (cp.async) 512 bytes of each row side by side
// into its own part of a ring, kStages tiles deep: no barrier but the warp's. x is a (8 of its 16 rows), w is
// b of the matrix step; x stays in registers. A place is refilled as soon as the warp has it in registers.
// The sums of a tile meet in shared memory, added in the order of depth. In flight on an SM: kStages x 8
// rows. The next launch is released at the start, as by gemm_stream.

#include "kernels/gemm_stream.cuh"

namespace ridge::cuda {

template <int kWarpsIn, int kStagesIn>
struct GemmRowsTraits {
  static constexpr int kWarps = kWarpsIn, kStages = kStagesIn, kThreads = kWarps * 32;
  static constexpr int kRows = 8, kTokens = 8, kCluster = 1, kSteps = 8;  // steps of 32 of depth
  static constexpr int rows_of_tile(Gate gate) { return gate == Gate::kNone ? kRows : kRows / 2; }
  static constexpr int kWidth = kWarps * 256;  // the longest `in`
  static constexpr int kWarpBytes = kRows * 512, kStageBytes = kWarps * kWarpBytes,
                       kRingBytes = kStages * kStageBytes;
  static constexpr int kSumStride = kRows, kSumFloats = kWarps * kTokens * kSumStride;
  static constexpr int kSharedBytes = kRingBytes + 2 * kSumFloats * 4;
};

/// Place, in its warp's row of a stage, of 16-byte piece `piece` of row `row`: lanes of two neighbouring rows
/// read 64 bytes each at once, and meet no bank twice.
__device__ __forceinline__ int place_of(int row, int piece) {
  return piece ^ (row & 1) * 4;
}

/// Starts the copy of this lane's part of a tile: 16 bytes of each row.
template <class Traits, Gate kGate, class T, class Y>
__device__ __forceinline__ void copy_row_tile(uint32_t stage, const LinearCall<T, T, Y>& call, int64_t tile,
                                              int64_t tiles) {
  if (tile < tiles) {
    const int lane = threadIdx.x & 31;
    const int64_t k = int64_t{threadIdx.x} * 8;
#pragma unroll
    for (int r = 0; r < Traits::kRows; ++r) {
      const T* const row = kGate == Gate::kNone ? tile_row<Traits, kGate>(call, tile, 0, r)
                                                : tile_row<Traits, kGate>(call, tile, r >> 2, r & 3);
      const bool live = k < call.in;
      device::ptx::copy_async_16(stage + r * 512 + place_of(r, lane) * 16, row + (live ? k : 0),
                                 live ? 16 : 0);
    }
  }
  device::ptx::copy_async_commit();
}

template <class Traits, class T, class Y, Gate kGate>
__global__ __launch_bounds__(Traits::kThreads, 1) void gemm_rows(device::Upstream upstream,
                                                                 LinearCall<T, T, Y> call) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kStages = Traits::kStages, kSteps = Traits::kSteps;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int64_t tiles = ceil_div(call.out, Traits::rows_of_tile(kGate));
  unsigned char* const own = shared + warp * Traits::kWarpBytes;
  const uint32_t ring = device::ptx::shared_address(own);
  float* const sums = reinterpret_cast<float*>(shared + Traits::kRingBytes);  // [2][kWarps, kTokens, kRows]

  upstream.release_next();
  int64_t next = blockIdx.x;
#pragma unroll
  for (int s = 0; s < kStages; ++s, next += gridDim.x)
    copy_row_tile<Traits, kGate>(ring + s * Traits::kStageBytes, call, next, tiles);
  const auto waited = upstream.wait();
  uint4 x[kSteps];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int64_t k = warp * 256 + s * 32 + t * 8;
    x[s] = g < call.tokens && k < call.in
               ? *reinterpret_cast<const uint4*>(call.x.after(waited) + g * call.x_stride + k)
               : uint4{};
  }

  int slot = 0, half = 0;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x, half ^= 1, next += gridDim.x) {
    const float added = kGate == Gate::kNone ? residual_of_tile<Traits>(call, waited, tile) : 0;
    device::ptx::copy_async_wait<kStages - 1>();
    __syncwarp();
    uint4 w[kSteps];
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
      w[s] = *reinterpret_cast<const uint4*>(own + slot * Traits::kStageBytes + g * 512 +
                                             place_of(g, s * 4 + t) * 16);
    __syncwarp();
    copy_row_tile<Traits, kGate>(ring + slot * Traits::kStageBytes, call, next, tiles);
    float sum[2][4] = {};
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const uint32_t first[4] = {x[s].x, 0, x[s].y, 0}, second[4] = {x[s].z, 0, x[s].w, 0};
      device::mma<T>(sum[0], first, w[s].x, w[s].y);
      device::mma<T>(sum[1], second, w[s].z, w[s].w);
    }
    slot = slot + 1 == kStages ? 0 : slot + 1;
    *reinterpret_cast<float2*>(sums + half * Traits::kSumFloats +
                               (warp * Traits::kTokens + g) * Traits::kSumStride + t * 2) =
        float2{sum[0][0] + sum[1][0], sum[0][1] + sum[1][1]};
    __syncthreads();
    // The other half of `sums` is written next; this one not before everybody has passed the next barrier.
    if (threadIdx.x < Traits::kTokens * Traits::rows_of_tile(kGate))
      store_tile<Traits, kGate>(sums + half * Traits::kSumFloats, call, RowsEnd{}, nullptr, waited, tile,
                                added);
  }
}

template <class Traits, Gate kGate = Gate::kNone, class T, class Y>
static Status launch_gemm_rows(cudaStream_t stream, const LinearCall<T, T, Y>& call, int multiprocessors) {
  const auto kernel = gemm_rows<Traits, T, Y, kGate>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemm_rows"));
  if (call.in > Traits::kWidth)
    return declined("gemm_rows: in is ", call.in, ", this kernel takes up to ", Traits::kWidth);
  if (call.tokens > Traits::kTokens)
    return declined("gemm_rows: tokens is ", call.tokens, ", this kernel takes up to 8");
  device::LaunchShape shape;
  shape.grid.x =
      static_cast<unsigned>(min(ceil_div(call.out, Traits::rows_of_tile(kGate)), int64_t{multiprocessors}));
  shape.block.x = Traits::kThreads, shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "gemm_rows", kernel, call);
}

}  // namespace ridge::cuda
