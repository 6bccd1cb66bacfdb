#pragma once
// gemm_wgmma: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ for up to 64 tokens a block. 16-bit in, f32 sums.
// Limit: read bandwidth of w; the tensor cores need a quarter of that time.
//
// kGroups warpgroups own 64 rows of w each and share 64 tokens: w is a, x is b of wgmma, both read from
// shared memory by the tensor cores, so no register and no ldmatrix carries them. A stage is kAtoms x 64 of
// depth, 128 bytes of a row of w or x each, copied by all threads (cp.async, 16 bytes each, swizzled); the L2
// cache is asked for the next 128 bytes too. The kCluster blocks of a cluster own the same rows and take
// stages in turns; their sums meet in shared memory in the order of the blocks. Shared memory: kStages x (8
// kGroups + 8) KiB.

#include "kernels/gemm_tokens.cuh"

namespace ridge::cuda {

template <int kGroupsIn, int kStagesIn, int kClusterIn, int kBlocksPerSmIn, int kAtomsIn = 1>
struct GemmWgmmaTraits {
  static constexpr int kGroups = kGroupsIn, kStages = kStagesIn, kCluster = kClusterIn,
                       kBlocksPerSm = kBlocksPerSmIn;
  static constexpr int kThreads = kGroups * 128, kRows = kGroups * 64, kTokens = 64;
  // Rows of y that a block makes: with a gate half of its rows are of either matrix.
  static constexpr int rows_of_block(Gate gate) { return gate == Gate::kNone ? kRows : kRows / 2; }
  static constexpr int kAtoms = kAtomsIn, kDepth = 64 * kAtoms;  // of a stage: 128 bytes of a row an atom
  static constexpr int kWeightBytes = kRows * 128, kTokenBytes = kTokens * 128;  // of an atom
  static constexpr int kStageBytes = kAtoms * (kWeightBytes + kTokenBytes);
  // Vectors of 16 bytes that a thread copies of an atom: rows threadIdx / 8 + i * kThreads / 8, place
  // threadIdx % 8.
  static constexpr int kWeightVectors = kRows * 8 / kThreads,
                       kTokenVectors = (kTokens * 8 + kThreads - 1) / kThreads;
  static constexpr int kWarpsDepth = 1, kSumStride = kRows + 4, kSumBytes = kTokens * kSumStride * 4;
  static constexpr int kRingBytes = kStages * kStageBytes;
  static constexpr int kSharedBytes =
      (kRingBytes > kSumBytes ? kRingBytes : kSumBytes) + 1024;  // to align the ring
  static_assert(kRows * 8 % kThreads == 0 && kStages >= 2 && kSharedBytes <= 227 * 1024);
};

/// What a thread copies of every stage: its rows of w and of x, at its place of their 128 bytes.
template <class Traits, class T, Gate kGate>
struct TileCopies {
  const T* w[Traits::kWeightVectors];
  const T* x[Traits::kTokenVectors];  // none: the token does not exist and becomes 0
  uint32_t target;                    // of the first row, in an atom
  int32_t in, place;                  // place: elements from the atom's start

  template <class Y>
  __device__ TileCopies(const LinearCall<T, T, Y>& call, int64_t row0) : in(static_cast<int32_t>(call.in)) {
    const int row = static_cast<int>(threadIdx.x) / 8;
    place = static_cast<int>(threadIdx.x) % 8 * 8;
    target = device::swizzle_128(row, place / 8);  // kThreads / 8 rows on, the swizzle is the same
#pragma unroll
    for (int i = 0; i < Traits::kWeightVectors;
         ++i) {  // rows past the end read the last one; their sums are dropped
      constexpr int kRows = Traits::rows_of_block(kGate);
      const int r = row + i * (Traits::kThreads / 8);
      const T* const matrix = kGate != Gate::kNone && r >= kRows ? call.w_up : call.w;
      w[i] = matrix + min(row0 + r % kRows, call.out - 1) * call.w_stride + place;
    }
  }
  template <class Y>
  __device__ void set_tokens(const T* tokens, const LinearCall<T, T, Y>& call, int64_t token0) {
#pragma unroll
    for (int i = 0; i < Traits::kTokenVectors; ++i) {
      const int row = static_cast<int>(threadIdx.x) / 8 + i * (Traits::kThreads / 8);
      x[i] = row < Traits::kTokens && token0 + row < call.tokens
                 ? tokens + (token0 + row) * call.x_stride + place
                 : nullptr;
    }
  }
  __device__ void copy_weights(uint32_t stage, int32_t k) const {
#pragma unroll
    for (int atom = 0; atom < Traits::kAtoms; ++atom)
#pragma unroll
      for (int i = 0; i < Traits::kWeightVectors; ++i) {
        const bool live = k + atom * 64 + place < in;
        device::ptx::copy_async_16_l2_256(
            stage + atom * Traits::kWeightBytes + target + i * (Traits::kThreads / 8 * 128),
            w[i] + (live ? k + atom * 64 : -place), live ? 16 : 0);
      }
  }
  __device__ void copy_tokens(uint32_t stage, int32_t k) const {
#pragma unroll
    for (int atom = 0; atom < Traits::kAtoms; ++atom)
#pragma unroll
      for (int i = 0; i < Traits::kTokenVectors; ++i) {
        if (Traits::kTokens * 8 % Traits::kThreads != 0 &&
            static_cast<int>(threadIdx.x) / 8 + i * (Traits::kThreads / 8) >= Traits::kTokens)
          break;
        const bool live = x[i] != nullptr && k + atom * 64 + place < in;
        device::ptx::copy_async_16(stage + Traits::kAtoms * Traits::kWeightBytes +
                                       atom * Traits::kTokenBytes + target + i * (Traits::kThreads / 8 * 128),
                                   live ? x[i] + k + atom * 64 : w[0] - place, live ? 16 : 0);
      }
  }
};

template <class Traits, class T, class Y, Gate kGate>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void gemm_wgmma(device::Upstream upstream,
                                                                   LinearCall<T, T, Y> call) {
  extern __shared__ unsigned char shared_memory[];
  constexpr int kStages = Traits::kStages;
  const uint32_t unaligned = device::ptx::shared_address(shared_memory),
                 ring = (unaligned + 1023) / 1024 * 1024;
  unsigned char* const shared = shared_memory + (ring - unaligned);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = warp / 4;
  const int64_t row0 = int64_t{blockIdx.x} / Traits::kCluster * Traits::rows_of_block(kGate),
                token0 = int64_t{blockIdx.y} * Traits::kTokens;
  const int64_t rank = blockIdx.x % Traits::kCluster, depths = ceil_div(call.in, Traits::kDepth);
  const int32_t stages = rank < depths ? static_cast<int32_t>((depths - 1 - rank) / Traits::kCluster + 1) : 0;
  const auto stage_k = [&](int32_t stage) {
    return static_cast<int32_t>(rank + stage * Traits::kCluster) * Traits::kDepth;
  };

  TileCopies<Traits, T, kGate> copies(call, row0);
  // w of the first stages before the wait, x of them after it.
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s)
    if (s < stages) copies.copy_weights(ring + s * Traits::kStageBytes, stage_k(s));
  if (stages < kStages) upstream.release_next();
  const auto waited = upstream.wait();
  copies.set_tokens(call.x.after(waited), call, token0);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < stages) copies.copy_tokens(ring + s * Traits::kStageBytes, stage_k(s));
    device::ptx::copy_async_commit();
  }

  float sum[32] = {};
  int slot = 0;
  for (int32_t stage = 0; stage < stages; ++stage) {
    device::ptx::copy_async_wait<kStages - 2>();
    device::ptx::wgmma_wait<0>();
    device::ptx::fence_proxy_async();
    __syncthreads();  // the stage is here, and everybody is done with the one before
    const int32_t ahead = stage + kStages - 1;
    if (ahead < stages) {
      const uint32_t place = ring + (slot == 0 ? kStages - 1 : slot - 1) * Traits::kStageBytes;
      copies.copy_weights(place, stage_k(ahead));
      copies.copy_tokens(place, stage_k(ahead));
    }
    device::ptx::copy_async_commit();
    if (ahead + 1 == stages) upstream.release_next();
    const uint32_t a = ring + slot * Traits::kStageBytes + group * 64 * 128,
                   b = ring + slot * Traits::kStageBytes + Traits::kAtoms * Traits::kWeightBytes;
    device::ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < Traits::kDepth / 16; ++k)
      device::wgmma_m64n64k16<T>(sum,
                                 device::matrix_descriptor(a + k / 4 * Traits::kWeightBytes + k % 4 * 32),
                                 device::matrix_descriptor(b + k / 4 * Traits::kTokenBytes + k % 4 * 32));
    device::ptx::wgmma_commit();
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
  device::ptx::wgmma_wait<0>();
  __syncthreads();  // the ring's memory becomes the sums'

  float* const sums = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int token = i / 4 * 8 + (lane & 3) * 2 + (i & 1), row = warp * 16 + (lane >> 2) + (i >> 1 & 1) * 8;
    sums[token * Traits::kSumStride + row] = sum[i];
  }
  if constexpr (Traits::kCluster > 1) {
    device::ptx::cluster_arrive();
    device::ptx::cluster_wait();
  } else {
    __syncthreads();
  }
  store_sums<Traits, kGate>(sums, call, waited, token0, row0);
  if constexpr (Traits::kCluster > 1) {  // others still read this block's sums
    device::ptx::cluster_arrive();
    device::ptx::cluster_wait();
  }
}

template <class Traits, class T, class Y, Gate kGate = Gate::kNone>
static Status launch_gemm_wgmma(cudaStream_t stream, const LinearCall<T, T, Y>& call) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      gemm_wgmma<Traits, T, Y, kGate>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemm_wgmma"));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(ceil_div(call.out, Traits::rows_of_block(kGate)) * Traits::kCluster);
  shape.grid.y = static_cast<unsigned>(ceil_div(call.tokens, Traits::kTokens));
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  shape.cluster = Traits::kCluster;
  return device::launch_dependent(stream, shape, "gemm_wgmma", gemm_wgmma<Traits, T, Y, kGate>, call);
}

}  // namespace ridge::cuda
