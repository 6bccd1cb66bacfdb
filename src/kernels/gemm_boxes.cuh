#pragma once
// gemm_boxes: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ for up to 64 tokens and many rows. bf16 in, f32
// sums. Limit: read bandwidth of w.
//
// x is a and w is b of wgmma, so that a block may have any number of rows of w up to kRows: as many as make
// even waves of blocks, one a multiprocessor; with a gate half of them are of either matrix. All blocks walk
// through x side by side, so that its boxes come from the L2 cache once for many multiprocessors. The
// warpgroup that multiplies (box_ring.cuh) stores its sums from registers. In flight on an SM: kStages x
// kRows x 128 bytes of w.

#include "kernels/box_ring.cuh"

namespace ridge::cuda {

template <int kRowsIn, int kStagesIn, int kAheadIn, device::BoxFetch kFetchIn = device::BoxFetch::kAsIs>
struct GemmBoxesTraits {
  using Ring = BoxRing<kRowsIn, kStagesIn, 1, kAheadIn, Release::kAtLastCopy>;
  static constexpr int kRows = kRowsIn, kTokens = 64, kThreads = 160;
  static constexpr device::BoxFetch kFetch = kFetchIn;  // of w
  static constexpr int rows_of_block(Gate gate) { return gate == Gate::kNone ? kRows : kRows / 2; }
  static constexpr int kSharedBytes = Ring::kBytes + 1024;  // to align the ring
  static_assert(kSharedBytes <= 226 * 1024);
};

template <class Traits, class T, class Y, Gate kGate>
__global__ __launch_bounds__(Traits::kThreads, 1) void gemm_boxes(device::Upstream upstream,
                                                                  const __grid_constant__ BoxMaps maps,
                                                                  LinearCall<T, T, Y> call) {
  using Ring = typename Traits::Ring;
  extern __shared__ unsigned char shared_memory[];
  __shared__ RingBarriers<Ring::kStages> barriers;
  const uint32_t ring = (device::ptx::shared_address(shared_memory) + 1023) / 1024 * 1024;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int64_t row0 = int64_t{blockIdx.x} * maps.rows;
  const RingCopies<Ring, kGate> copies{maps, barriers, ring, 0, static_cast<int32_t>(row0), maps.stages};
  if (threadIdx.x == 128) {
    device::ptx::prefetch_tensor_map(maps.w.address()), device::ptx::prefetch_tensor_map(maps.x.address());
    barriers.init();
    copies.begin(upstream);
  }
  __syncthreads();
  if (warp == 4) {
    if (lane == 0) copies.run(upstream);
    return;
  }
  float sum[Traits::kRows / 2];
  multiply_ring<Ring>(sum, barriers, ring, maps.stages);
  const auto waited = upstream.wait();
  const int own_row = (lane & 3) * 2;
  const BoxOutputs<Y> outputs(call, maps, waited, row0 + own_row, own_row, warp * 16 + (lane >> 2));
  constexpr int kGroups = Traits::rows_of_block(kGate) / 8;
  const bool adds = outputs.bias != nullptr || outputs.residual[0] != nullptr;
  const auto value = [&](int i, int half) {
    float first = sum[4 * i + 2 * half], second = sum[4 * i + 2 * half + 1];
    if constexpr (kGate != Gate::kNone) {
      first = gated<kGate>(first, sum[4 * (i + kGroups) + 2 * half]);
      second = gated<kGate>(second, sum[4 * (i + kGroups) + 2 * half + 1]);
    } else if (adds) {
      const float2 more = outputs.added(i, half);
      first += more.x, second += more.y;
    }
    return float2{first, second};
  };
  const auto store = [&]<bool kPairs>() {
#pragma unroll
    for (int i = 0; i < kGroups; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 two = value(i, half);
        outputs.template store<kPairs>(i, half, two.x, two.y);
      }
  };
  if constexpr (sizeof(Y) == 2)
    if (maps.eights) {
#pragma unroll
      for (int i = 0; i < kGroups; i += 4)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          uint32_t words[4] = {};
#pragma unroll
          for (int j = 0; j < 4 && i + j < kGroups; ++j) {
            const float2 two = value(i + j, half);
            words[j] = device::pack2<Y>(two.x, two.y);
          }
          outputs.store_eights(i, kGroups, half, words);
        }
      return;
    }
  if (maps.pairs)
    store.template operator()<true>();
  else
    store.template operator()<false>();
}

/// `sms`: multiprocessors, among which the rows are divided, in as many waves as they need.
template <class Traits, class T, class Y, Gate kGate = Gate::kNone>
static Status launch_gemm_boxes(cudaStream_t stream, const LinearCall<T, T, Y>& call, int sms) {
  const auto kernel = gemm_boxes<Traits, T, Y, kGate>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemm_boxes"));
  if (call.tokens > Traits::kTokens)
    return declined("gemm_boxes: tokens is ", call.tokens, ", this kernel takes up to ", Traits::kTokens);
  constexpr int kMost = Traits::rows_of_block(kGate);
  const int64_t blocks = ceil_div(call.out, int64_t{kMost} * sms) * sms;
  RIDGE_ASSIGN(BoxMaps maps,
               (box_maps<typename Traits::Ring, Y>(
                   call, static_cast<int32_t>(ceil_div(call.out, blocks * 8) * 8), Traits::kFetch)));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(ceil_div(call.out, int64_t{maps.rows}));
  shape.block.x = Traits::kThreads, shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "gemm_boxes", kernel, maps, call);
}

}  // namespace ridge::cuda
