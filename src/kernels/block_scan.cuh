#pragma once
// Scans and sums of integers over a block of 1024 threads, and a sort of keys in shared memory. Integers, so
// that the order of additions does not show.

#include <cstdint>

namespace ridge::cuda {

inline constexpr int kScanThreads = 1024, kScanWarps = kScanThreads / 32;

template <class T>
__device__ __forceinline__ T warp_inclusive(T v) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T other = __shfl_up_sync(0xffffffffu, v, step);
    if (lane >= step) v += other;
  }
  return v;
}

/// Inclusive sum over the threads; `warps`: kScanWarps of shared memory, free again after the next barrier.
template <class T>
__device__ __forceinline__ T block_inclusive(T v, T* warps) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warp_inclusive(v);
  if (lane == 31) warps[warp] = v;
  __syncthreads();
  if (warp == 0) warps[lane] = warp_inclusive(warps[lane]);
  __syncthreads();
  return warp == 0 ? v : v + warps[warp - 1];
}

/// Sorts keys[0, n) ascending; n is a power of two of at least 2. All threads call it; a barrier first and
/// last.
__device__ inline void block_sort(uint64_t* keys, int n) {
  for (int size = 2; size <= n; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < n / 2; i += kScanThreads) {
        const int low = i / step * 2 * step + i % step, high = low + step;
        const uint64_t a = keys[low], b = keys[high];
        if ((a > b) == ((low & size) == 0)) keys[low] = b, keys[high] = a;
      }
    }
  __syncthreads();
}

}  // namespace ridge::cuda
