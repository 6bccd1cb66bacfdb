#pragma once
// Reductions over the lanes of a warp and the threads of a block. The order is fixed by lane and warp, so
// that a result does not depend on timing.

#include "device/ptx.cuh"

namespace ridge::device {

struct Sum {
  static constexpr float kNeutral = 0.0f;
  __device__ static float join(float a, float b) { return a + b; }
};
struct Max {
  static constexpr float kNeutral = -INFINITY;
  __device__ static float join(float a, float b) { return fmaxf(a, b); }
};

/// Over groups of kLanes neighbouring lanes, kStride lanes apart; every lane gets the result.
template <class Op, int kLanes = 32, int kStride = 1>
__device__ __forceinline__ float warp_reduce(float v) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2)
    v = Op::join(v, __shfl_xor_sync(0xffffffffu, v, step * kStride));
  return v;
}

/// Over all threads of a block of whole warps; every thread gets the result. `scratch`: 32 floats of shared
/// memory, free for other use only after the next barrier.
template <class Op>
__device__ __forceinline__ float block_reduce(float v, float* scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  v = warp_reduce<Op>(v);
  if (warps == 1) return v;
  if (lane == 0) scratch[warp] = v;
  __syncthreads();
  return warp_reduce<Op>(lane < warps ? scratch[lane] : Op::kNeutral);
}

}  // namespace ridge::device
