#pragma once
// gemm_pair: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ for up to 64 tokens and few rows. bf16 in, f32
// sums. Limit: read bandwidth of w.
//
// The two blocks of a cluster have the same rows of w (up to kRows) and half of `in` each: one even wave of
// blocks, one a multiprocessor. x is a, w is b of wgmma. A stage is kAtoms x 64 of depth of both; one thread
// asks the copy engine for boxes of w before the wait, of x after it. All blocks walk through x side by side,
// so that its boxes come from the L2 cache once for many multiprocessors. At the end a block sends half of
// its sums to the other by asynchronous stores and adds those that it gets, first half of `in` first. In
// flight on an SM: kStages x kAtoms x kRows x 128 bytes of w.

#include "kernels/box_ring.cuh"

namespace ridge::cuda {

template <int kRowsIn, int kStagesIn, int kAtomsIn, int kAheadIn>
struct GemmPairTraits {
  using Ring = BoxRing<kRowsIn, kStagesIn, kAtomsIn, kAheadIn, Release::kAtStart>;
  static constexpr int kRows = kRowsIn, kTokens = 64, kThreads = 160;
  static constexpr int kGroups = kRows / 8, kOwnGroups = kGroups / 2;  // of 8 rows
  static constexpr int kSumBytes = kOwnGroups * 128 * 16;
  static constexpr int kSharedBytes = Ring::kBytes + kSumBytes + 1024;  // to align the ring
  static_assert(kSharedBytes <= 226 * 1024);
};

template <class Traits, class T, class Y>
__global__ __launch_bounds__(Traits::kThreads, 1) void gemm_pair(device::Upstream upstream,
                                                                 const __grid_constant__ BoxMaps maps,
                                                                 LinearCall<T, T, Y> call) {
  namespace ptx = device::ptx;
  extern __shared__ unsigned char shared_memory[];
  using Ring = typename Traits::Ring;
  __shared__ RingBarriers<Ring::kStages> barriers;
  __shared__ uint64_t sums_here;
  constexpr int kOwn = Traits::kOwnGroups;
  const uint32_t unaligned = ptx::shared_address(shared_memory), ring = (unaligned + 1023) / 1024 * 1024,
                 parts = ring + Ring::kBytes;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, rank = blockIdx.x & 1;
  const int32_t row0 = static_cast<int32_t>(blockIdx.x >> 1) * maps.rows;
  const int32_t stages = rank == 0 ? maps.half : maps.stages - maps.half;
  const RingCopies<Ring, Gate::kNone> copies{maps, barriers, ring, rank * maps.half * Ring::kDepth,
                                             row0, stages};
  if (threadIdx.x == 128) {
    ptx::prefetch_tensor_map(maps.w.address()), ptx::prefetch_tensor_map(maps.x.address());
    ptx::barrier_init(ptx::shared_address(&sums_here), 1);
    barriers.init();
    copies.begin(upstream);
    ptx::barrier_expect(ptx::shared_address(&sums_here), Traits::kSumBytes);
  }
  __syncthreads();
  ptx::cluster_arrive();
  if (warp == 4) {
    if (lane == 0) copies.run(upstream);
    __syncwarp();
    ptx::cluster_wait();
    return;
  }
  const auto waited = upstream.wait();
  const int own_row = rank * kOwn * 8 + (lane & 3) * 2;
  const BoxOutputs<Y> outputs(call, maps, waited, row0 + own_row, own_row, warp * 16 + (lane >> 2));
  float2 added[kOwn][2] = {};
  if (outputs.bias != nullptr || outputs.residual[0] != nullptr)
#pragma unroll
    for (int i = 0; i < kOwn; ++i) added[i][0] = outputs.added(i, 0), added[i][1] = outputs.added(i, 1);
  float sum[Traits::kGroups * 4];
  multiply_ring<Ring>(sum, barriers, ring, stages);
  ptx::cluster_wait();  // the other block has its barriers
  const uint32_t to = ptx::cluster_address(parts + threadIdx.x * 16, rank ^ 1),
                 full = ptx::cluster_address(ptx::shared_address(&sums_here), rank ^ 1);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    float own[4], other[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float low = sum[i * 4 + j], high = sum[(i + kOwn) * 4 + j];
      own[j] = rank == 0 ? low : high, other[j] = rank == 0 ? high : low;
      sum[i * 4 + j] = own[j];
    }
    ptx::store_async_16(to + i * 2048, other[0], other[1], other[2], other[3], full);
  }
  while (!ptx::barrier_try_wait_cluster(ptx::shared_address(&sums_here), 0)) {
  }
  const float4* const got =
      reinterpret_cast<const float4*>(shared_memory + (parts - unaligned)) + threadIdx.x;
  const auto store = [&]<bool kPairs>() {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const float4 v = got[i * 128];
      outputs.template store<kPairs>(i, 0, sum[4 * i] + v.x + added[i][0].x,
                                     sum[4 * i + 1] + v.y + added[i][0].y);
      outputs.template store<kPairs>(i, 1, sum[4 * i + 2] + v.z + added[i][1].x,
                                     sum[4 * i + 3] + v.w + added[i][1].y);
    }
  };
  if (maps.pairs)
    store.template operator()<true>();
  else
    store.template operator()<false>();
}

/// `sms`: multiprocessors, among whose pairs the rows are divided.
template <class Traits, class T, class Y>
static Status launch_gemm_pair(cudaStream_t stream, const LinearCall<T, T, Y>& call, int sms) {
  const auto kernel = gemm_pair<Traits, T, Y>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemm_pair"));
  if (call.tokens > Traits::kTokens)
    return declined("gemm_pair: tokens is ", call.tokens, ", this kernel takes up to ", Traits::kTokens);
  const int64_t rows = ceil_div(call.out, int64_t{sms / 2 * 2}) * 2;
  if (rows > Traits::kRows)
    return declined("gemm_pair: out is ", call.out, " on ", sms, " multiprocessors, this kernel takes up to ",
                    Traits::kRows, " rows on two");
  RIDGE_ASSIGN(BoxMaps maps, (box_maps<typename Traits::Ring, Y>(call, static_cast<int32_t>(rows),
                                                                 device::BoxFetch::kAsIs)));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(ceil_div(call.out, int64_t{maps.rows}) * 2);
  shape.block.x = Traits::kThreads, shape.shared_bytes = Traits::kSharedBytes, shape.cluster = 2;
  return device::launch_dependent(stream, shape, "gemm_pair", kernel, maps, call);
}

}  // namespace ridge::cuda
