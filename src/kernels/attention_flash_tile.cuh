#pragma once
// What attention_flash does with one tile of keys: scores, the softmax so far, values.

#include "device/mma.cuh"
#include "device/tensor_map.cuh"
#include "kernels/attention_terms.cuh"
#include "kernels/attention_tiles_call.cuh"

namespace ridge::cuda {

template <int kHeadDimIn, int kKeysIn, int kGroupsIn, int kSlotsIn>
struct FlashTraits {
  static constexpr int kHeadDim = kHeadDimIn, kKeys = kKeysIn, kSlots = kSlotsIn;
  static constexpr int kGroups = kGroupsIn, kRows = 64 * kGroups;  // warpgroups that multiply, their rows
  static constexpr int kWorkers = 128 * kGroups;
  // Three warpgroups have 168 registers a thread, of which the copying one gives most to the others.
  static constexpr bool kGiveRegisters = kGroups > 1;
  static constexpr int kThreads = kWorkers + (kGiveRegisters ? 128 : 32);
  static constexpr int kPanels = kHeadDim / 64;  // of 128 bytes a row
  static constexpr int kTermBytes = kPanels * kRows * 128, kSlotBytes = kPanels * kKeys * 128;
  static constexpr int kSharedBytes = 2 * kTermBytes + kSlots * kSlotBytes;
  static_assert(kHeadDim % 64 == 0 && kKeys % 64 == 0 && kSharedBytes <= 226 * 1024);
};

/// Of a thread's two rows, g and g + 8 of its warp's 16: columns 8 j + 2 t, + 1 as out[4 j …].
template <class Traits>
struct FlashState {
  float out[Traits::kHeadDim / 2] = {};
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {};  // base 2; sum: of this thread's keys
  int first[2], last[2];                               // keys [first, last) are seen
};

/// s = q · kᵀ, q as two terms of T.
template <class Traits, class T>
__device__ __forceinline__ void flash_scores(float (&s)[Traits::kKeys / 2], uint64_t q, uint64_t k) {
  namespace ptx = device::ptx;
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < Traits::kHeadDim / 16; ++step) {
    const int a = step / 4 * Traits::kRows * 128 + step % 4 * 32,
              b = step / 4 * Traits::kKeys * 128 + step % 4 * 32;
    if (step == 0)
      device::wgmma_scores<T, false>(s, q, k);
    else
      device::wgmma_scores<T, true>(s, q + (a >> 4), k + (b >> 4));
    device::wgmma_scores<T, true>(s, q + ((a + Traits::kTermBytes) >> 4), k + (b >> 4));
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
#pragma unroll
  for (float& one : s) ptx::keep_here(one);
}

/// Scores to base 2; with kMasked -inf where a row does not see the key.
template <class Traits, bool kMasked>
__device__ __forceinline__ void flash_scale(float (&s)[Traits::kKeys / 2], const FlashState<Traits>& state,
                                            const AttentionTilesCall& call, int first_key) {
  constexpr float kLog2e = 1.44269504f;
  const float scale = call.softcap > 0 ? call.scale : call.scale * kLog2e;
#pragma unroll
  for (int i = 0; i < Traits::kKeys / 2; ++i)
    s[i] = __fmul_rn(s[i], scale);  // never one step with what follows
  if (call.softcap > 0) {
#pragma unroll
    for (int i = 0; i < Traits::kKeys / 2; ++i) s[i] = call.softcap * kLog2e * tanhf(s[i] / call.softcap);
  }
  if constexpr (kMasked) {
    const int own = first_key + (threadIdx.x & 3) * 2;
#pragma unroll
    for (int i = 0; i < Traits::kKeys / 2; ++i) {
      const int key = own + i / 4 * 8 + (i & 1), row = i >> 1 & 1;
      if (key < state.first[row] || key >= state.last[row]) s[i] = -INFINITY;
    }
  }
}

/// Takes scores into the running softmax; they become weights.
template <class Traits>
__device__ __forceinline__ void flash_weigh(float (&s)[Traits::kKeys / 2], FlashState<Traits>& state) {
  float scale[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float top = s[2 * row];
#pragma unroll
    for (int i = 0; i < Traits::kKeys / 2; ++i)
      if ((i >> 1 & 1) == row) top = fmaxf(top, s[i]);
    top = fmaxf(state.top[row], device::warp_reduce<device::Max, 4>(top));
    const float base = top == -INFINITY ? 0 : top;
    scale[row] = device::ptx::exp2_approx(state.top[row] - base);
    state.top[row] = top;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Traits::kKeys / 2; ++i)
      if ((i >> 1 & 1) == row) sum += s[i] = device::ptx::exp2_approx(s[i] - base);
    state.sum[row] = fmaf(state.sum[row], scale[row], sum);
  }
  if (!__any_sync(0xffffffffu, scale[0] != 1 || scale[1] != 1)) return;
#pragma unroll
  for (int i = 0; i < Traits::kHeadDim / 2; ++i) state.out[i] *= scale[i >> 1 & 1];
}

/// Whether one of two elements of T is no finite number.
template <class T>
__device__ __forceinline__ bool not_finite(uint32_t two) {
  constexpr uint32_t kExponent = kDTypeOf<T> == kBF16 ? 0x7f807f80u : 0x7c007c00u,
                     kOne = kDTypeOf<T> == kBF16 ? 0x00800080u : 0x04000400u;
  return (((two & kExponent) + kOne) & 0x80008000u) != 0;
}
/// The elements of two that are finite, zeros for the others.
template <class T>
__device__ __forceinline__ uint32_t finite_of(uint32_t two) {
  const uint32_t low = not_finite<T>(two & 0xffffu) ? 0 : two & 0xffffu;
  return low | (not_finite<T>(two & 0xffff0000u) ? 0 : two & 0xffff0000u);
}

/// A tile that some row of the block does not see whole: its weights of 0 must meet finite values. Makes V
/// zeros outside of keys [begin, end), which no row sees: nobody may have written there. Elements that are no
/// finite number make NaN of the outputs of rows that see them, then are zeros too. All workers come here
/// together.
template <class Traits, class T>
__device__ __forceinline__ void mend_values(FlashState<Traits>& state, unsigned char* values, int first_key,
                                            int begin, int end) {
  constexpr int kVectors = Traits::kSlotBytes / 16;
  uint4* const all = reinterpret_cast<uint4*>(values);
  bool odd = false;
  for (int i = threadIdx.x; i < kVectors; i += Traits::kWorkers) {
    const uint4 v = all[i];
    if (const int row = i / 8 % Traits::kKeys; row < begin || row >= end)
      all[i] = uint4{};
    else
      odd = odd || not_finite<T>(v.x) || not_finite<T>(v.y) || not_finite<T>(v.z) || not_finite<T>(v.w);
  }
  if (device::ptx::sync_some_any(1, Traits::kWorkers, odd)) {
    for (int row = begin; row < end; ++row) {
      const int key = first_key + row;
      const bool seen[2] = {key >= state.first[0] && key < state.last[0],
                            key >= state.first[1] && key < state.last[1]};
#pragma unroll
      for (int j = 0; j < Traits::kHeadDim / 8; ++j) {
        const uint32_t two = *reinterpret_cast<const uint32_t*>(
            values + j / 8 * (Traits::kKeys * 128) + device::swizzle_128(row, j % 8) + (threadIdx.x & 3) * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (seen[i >> 1] && not_finite<T>(i & 1 ? two & 0xffff0000u : two & 0xffffu))
            state.out[4 * j + i] = NAN;
      }
    }
    device::ptx::sync_some(1, Traits::kWorkers);
    for (int i = threadIdx.x; i < kVectors; i += Traits::kWorkers) {
      const uint4 v = all[i];
      all[i] = {finite_of<T>(v.x), finite_of<T>(v.y), finite_of<T>(v.z), finite_of<T>(v.w)};
    }
  }
  device::ptx::fence_proxy_async();
  device::ptx::sync_some(1, Traits::kWorkers);
}

/// out += p · v, p as two terms of T, kWeightScale times as large.
template <class Traits, class T>
__device__ __forceinline__ void flash_values(FlashState<Traits>& state, const float (&s)[Traits::kKeys / 2],
                                             uint64_t v) {
  namespace ptx = device::ptx;
  uint32_t p[2][Traits::kKeys / 16][4];
#pragma unroll
  for (int i = 0; i < Traits::kKeys / 4; ++i) {
    uint32_t &first = p[0][i / 4][i % 4], &second = p[1][i / 4][i % 4];
    device::split_terms<T>(s[2 * i] * kWeightScale<T>, s[2 * i + 1] * kWeightScale<T>, first, second);
    ptx::keep_here(first), ptx::keep_here(second);
  }
#pragma unroll
  for (float& one : state.out) ptx::keep_here(one);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < Traits::kKeys / 16; ++step)
#pragma unroll
    for (int term = 0; term < 2; ++term)
      device::wgmma_values<T>(state.out, p[term][step], v + (step * 2048 >> 4));
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
#pragma unroll
  for (float& one : state.out) ptx::keep_here(one);
}

}  // namespace ridge::cuda
