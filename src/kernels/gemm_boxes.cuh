#pragma once
// gemm_boxes: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ for up to 64 tokens and many rows. 16-bit in, f32
// sums. Limit: read bandwidth of w.
//
// x is a and w is b of wgmma, so that a block may have any number of rows of w up to kRows: as many as make
// one even wave of blocks, one a multiprocessor. One thread asks the copy engine for boxes of 64 of depth, of
// w before the wait, of x after it; one warpgroup multiplies; all threads store. Each block begins at a depth
// of its own, so that the blocks' boxes lie in different DRAM rows; the sums of a row are added in that
// order, whatever the tokens. In flight on an SM: kWeightStages x kRows x 128 bytes.

#include "device/convert.cuh"
#include "device/mma.cuh"
#include "device/tensor_map.cuh"
#include "kernels/linear_call.cuh"

namespace ridge::cuda {

template <int kRowsIn, int kWeightStagesIn, int kTokenStagesIn,
          device::BoxFetch kFetchIn = device::BoxFetch::k256Bytes>
struct GemmBoxesTraits {
  static constexpr int kRows = kRowsIn, kTokens = 64, kDepth = 64;
  static constexpr int kWeightStages = kWeightStagesIn, kTokenStages = kTokenStagesIn;
  static constexpr device::BoxFetch kFetch = kFetchIn;  // of w
  static constexpr int kThreads = 256, kWarps = 8;
  static constexpr int rows_of_block(Gate gate) { return gate == Gate::kNone ? kRows : kRows / 2; }
  static constexpr int kWeightBytes = kRows * 128, kTokenBytes = kTokens * 128;
  static constexpr int kSumStride = kRows + 4;  // floats between tokens
  static constexpr int kRingBytes = kWeightStages * kWeightBytes + kTokenStages * kTokenBytes;
  static constexpr int kSharedBytes = kRingBytes + 1024;  // to align the ring
  static constexpr int kTiles = kRows / 32;
  static constexpr int kOwnTokens = kTokens / kWarps;  // that a warp stores
  static_assert(kRows % 32 == 0 && kRows <= 256 && kWeightStages >= kTokenStages && kTokenStages >= 2);
  static_assert(kTokens * kSumStride * 4 <= kRingBytes);
};

struct BoxMaps {
  device::BoxMap w, w_up;
  device::FreshBoxMap x;
  int32_t rows = 0;  // of y, of a block; of each matrix
};

/// Full and empty states of the rings.
template <class Traits>
struct BoxBarriers {
  uint64_t w[Traits::kWeightStages], x[Traits::kTokenStages], done[Traits::kWeightStages];

  __device__ __forceinline__ void init() {
    namespace ptx = device::ptx;
    for (int i = 0; i < Traits::kWeightStages; ++i)
      ptx::barrier_init(ptx::shared_address(&w[i]), 1), ptx::barrier_init(ptx::shared_address(&done[i]), 4);
    for (int i = 0; i < Traits::kTokenStages; ++i) ptx::barrier_init(ptx::shared_address(&x[i]), 1);
    ptx::barrier_init_fence();
  }
  static __device__ __forceinline__ void wait(uint64_t& barrier, uint32_t parity) {
    const uint32_t at = device::ptx::shared_address(&barrier);
    while (!device::ptx::barrier_try_wait(at, parity)) {
    }
  }
};

/// The boxes of a block's rows, from one of its own on.
struct BoxTurns {
  int32_t first, stages;
  __device__ int32_t column(int32_t stage) const {
    const int32_t box = first + stage;
    return (box >= stages ? box - stages : box) * 64;
  }
};

/// What the copying thread does.
template <class Traits, Gate kGate>
struct BoxCopies {
  const BoxMaps& maps;
  BoxBarriers<Traits>& barriers;
  BoxTurns turns;
  uint32_t w_ring, x_ring;
  int32_t row0;

  __device__ __forceinline__ void copy_w(int32_t stage, int slot) const {
    namespace ptx = device::ptx;
    const uint32_t full = ptx::shared_address(&barriers.w[slot]),
                   place = w_ring + slot * Traits::kWeightBytes;
    ptx::barrier_expect(full, maps.rows * (kGate == Gate::kNone ? 128 : 256));
    ptx::copy_box(place, maps.w.address(), turns.column(stage), row0, full);
    if constexpr (kGate != Gate::kNone)
      ptx::copy_box(place + Traits::rows_of_block(kGate) * 128, maps.w_up.address(), turns.column(stage),
                    row0, full);
  }
  __device__ __forceinline__ void copy_x(device::Waited waited, int32_t stage, int slot) const {
    namespace ptx = device::ptx;
    const uint32_t full = ptx::shared_address(&barriers.x[slot]);
    ptx::barrier_expect(full, Traits::kTokenBytes);
    ptx::copy_box(x_ring + slot * Traits::kTokenBytes, maps.x.after(waited), turns.column(stage), 0, full);
  }
  __device__ __forceinline__ void fill_w() const {
    for (int s = 0; s < Traits::kWeightStages && s < turns.stages; ++s) copy_w(s, s);
  }
  /// The rest, as slots become free.
  __device__ __forceinline__ void run(const device::Upstream& upstream) const {
    if (turns.stages <= Traits::kWeightStages) upstream.release_next();
    const auto waited = upstream.wait();
    for (int s = 0; s < Traits::kTokenStages && s < turns.stages; ++s) copy_x(waited, s, s);
    int slot = 0, x_slot = 0;
    uint32_t parity = 0;
    for (int32_t stage = 0; stage + Traits::kTokenStages < turns.stages; ++stage) {
      BoxBarriers<Traits>::wait(barriers.done[slot], parity);
      if (stage + Traits::kWeightStages < turns.stages) copy_w(stage + Traits::kWeightStages, slot);
      copy_x(waited, stage + Traits::kTokenStages, x_slot);
      if (stage + Traits::kWeightStages + 1 == turns.stages) upstream.release_next();
      if (++slot == Traits::kWeightStages) slot = 0, parity ^= 1;
      if (++x_slot == Traits::kTokenStages) x_slot = 0;
    }
  }
};

/// What the warpgroup does with them; leaves its sums as [token][row] in shared memory, whose rings are free
/// then.
template <class Traits, class T>
__device__ __forceinline__ void multiply_boxes(float (&sum)[Traits::kTiles][16], float* sums,
                                               BoxBarriers<Traits>& barriers, uint32_t w_ring,
                                               uint32_t x_ring, int32_t stages) {
  namespace ptx = device::ptx;
  const auto keep_sums = [&] {
#pragma unroll
    for (int i = 0; i < Traits::kTiles * 16; ++i) ptx::keep_here(sum[i / 16][i % 16]);
  };
  keep_sums();
  int slot = 0, x_slot = 0, before = 0;
  uint32_t parity = 0, x_parity = 0;
  for (int32_t stage = 0; stage < stages; ++stage) {
    BoxBarriers<Traits>::wait(barriers.w[slot], parity);
    BoxBarriers<Traits>::wait(barriers.x[x_slot], x_parity);
    const uint32_t a = x_ring + x_slot * Traits::kTokenBytes, b = w_ring + slot * Traits::kWeightBytes;
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < Traits::kDepth / 16; ++k)
#pragma unroll
      for (int n = 0; n < Traits::kTiles; ++n)
        device::wgmma_m64n32k16<T>(sum[n], device::matrix_descriptor(a + k * 32),
                                   device::matrix_descriptor(b + n * 32 * 128 + k * 32));
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();  // the stage before is free
    if (stage > 0 && (threadIdx.x & 31) == 0)
      ptx::barrier_arrive(ptx::shared_address(&barriers.done[before]));
    before = slot;
    if (++slot == Traits::kWeightStages) slot = 0, parity ^= 1;
    if (++x_slot == Traits::kTokenStages) x_slot = 0, x_parity ^= 1;
  }
  ptx::wgmma_wait<0>();
  keep_sums();
  ptx::sync_some(1, 128);  // of the warpgroup: nobody reads the rings any more
  const int lane = threadIdx.x & 31;
  float* const mine = sums + ((threadIdx.x >> 5) * 16 + (lane >> 2)) * Traits::kSumStride + (lane & 3) * 2;
#pragma unroll
  for (int n = 0; n < Traits::kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      *reinterpret_cast<float2*>(mine + (i >> 1 & 1) * 8 * Traits::kSumStride + n * 32 + i / 4 * 8) =
          float2{sum[n][i], sum[n][i + 1]};
}

/// Stores the block's sums, a warp one token at a time, a lane every 32nd row. Residuals are asked for before
/// the sums are there. All threads call it.
template <class Traits, Gate kGate, class T, class Y>
__device__ __forceinline__ void store_boxes(const float* sums, const LinearCall<T, T, Y>& call,
                                            device::Waited waited, int64_t row0, int32_t rows) {
  constexpr int kRows = Traits::rows_of_block(kGate), kSteps = (kRows + 31) / 32;
  const int lane = threadIdx.x & 31, token0 = static_cast<int>(threadIdx.x >> 5) * Traits::kOwnTokens;
  const Y* const residual = call.residual.after(waited);
  float added[Traits::kOwnTokens][kSteps] = {};
  const auto live = [&](int token, int r) { return token < call.tokens && r < rows && row0 + r < call.out; };
  if (residual != nullptr)
#pragma unroll
    for (int i = 0; i < Traits::kOwnTokens; ++i)
#pragma unroll
      for (int j = 0; j < kSteps; ++j)
        if (live(token0 + i, lane + j * 32))
          added[i][j] =
              device::to_float(residual[(token0 + i) * call.residual_stride + row0 + lane + j * 32]);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Traits::kOwnTokens; ++i) {
    const float* const own = sums + (token0 + i) * Traits::kSumStride;
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      const int r = lane + j * 32;
      if (!live(token0 + i, r)) continue;
      if constexpr (kGate == Gate::kNone)
        store_sum(call, waited, token0 + i, row0 + r, own[r], added[i][j]);
      else
        store_gated<kGate>(call, waited, token0 + i, row0 + r, own[r], own[kRows + r]);
    }
  }
}

template <class Traits, class T, class Y, Gate kGate>
__global__ __launch_bounds__(Traits::kThreads, 1) void gemm_boxes(device::Upstream upstream,
                                                                  const __grid_constant__ BoxMaps maps,
                                                                  LinearCall<T, T, Y> call) {
  extern __shared__ unsigned char shared_memory[];
  __shared__ BoxBarriers<Traits> barriers;
  const uint32_t unaligned = device::ptx::shared_address(shared_memory),
                 w_ring = (unaligned + 1023) / 1024 * 1024,
                 x_ring = w_ring + Traits::kWeightStages * Traits::kWeightBytes;
  float* const sums = reinterpret_cast<float*>(shared_memory + (w_ring - unaligned));
  const int32_t depths = static_cast<int32_t>(ceil_div(call.in, Traits::kDepth));
  const int64_t row0 = int64_t{blockIdx.x} * maps.rows;
  const BoxTurns turns{static_cast<int32_t>(int64_t{blockIdx.x} * depths / gridDim.x), depths};
  const BoxCopies<Traits, kGate> copies{maps, barriers, turns, w_ring, x_ring, static_cast<int32_t>(row0)};
  if (threadIdx.x == 128) {
    device::ptx::prefetch_tensor_map(maps.w.address()), device::ptx::prefetch_tensor_map(maps.x.address());
    barriers.init();
    copies.fill_w();
  }
  __syncthreads();
  float sum[Traits::kTiles][16] = {};
  if (threadIdx.x < 128)
    multiply_boxes<Traits, T>(sum, sums, barriers, w_ring, x_ring, turns.stages);
  else if (threadIdx.x == 128)
    copies.run(upstream);
  __syncwarp();
  store_boxes<Traits, kGate>(sums, call, upstream.wait(), row0, maps.rows);
}

/// `sms`: multiprocessors, among which the rows are divided.
template <class Traits, class T, class Y, Gate kGate = Gate::kNone>
static Status launch_gemm_boxes(cudaStream_t stream, const LinearCall<T, T, Y>& call, int sms) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      gemm_boxes<Traits, T, Y, kGate>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemm_boxes"));
  if (call.tokens > Traits::kTokens)
    return declined("gemm_boxes: tokens is ", call.tokens, ", this kernel takes up to ", Traits::kTokens);
  BoxMaps maps;
  maps.rows = static_cast<int32_t>(ceil_div(call.out, int64_t{sms}));
  if (maps.rows > Traits::rows_of_block(kGate))
    return declined("gemm_boxes: out is ", call.out, " on ", sms,
                    " multiprocessors, this kernel takes up to ", Traits::rows_of_block(kGate),
                    " rows on each");
  RIDGE_TRY(
      device::make_box_map(&maps.w.map, call.w, call.out, call.in, call.w_stride, maps.rows, Traits::kFetch));
  maps.w_up = maps.w;
  if (kGate != Gate::kNone)
    RIDGE_TRY(device::make_box_map(&maps.w_up.map, call.w_up, call.out, call.in, call.w_stride, maps.rows,
                                   Traits::kFetch));
  const int64_t x_stride = call.tokens > 1 ? call.x_stride : call.in;  // of one row it may be anything
  RIDGE_TRY(
      device::make_box_map(&maps.x.map, call.x.address(), call.tokens, call.in, x_stride, Traits::kTokens));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(ceil_div(call.out, int64_t{maps.rows}));
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "gemm_boxes", gemm_boxes<Traits, T, Y, kGate>, maps, call);
}

}  // namespace ridge::cuda
