#pragma once
// The rings of decode attention: rows that the lanes copied, padded, or boxes of 16 keys that the copy engine
// brought. A box is what one page holds of 16 keys of a head, wherever they lie in it: one instruction
// instead of 8 a lane, and DRAM is asked for all of it together.

#include "device/tensor_map.cuh"
#include "kernels/attention_plan.cuh"

namespace ridge::cuda {

struct KeyMaps {
  CUtensorMap k, v;  // [pages, kv_heads, head_dim / 64, page_size, 64]
};
struct NoMaps {};
template <class Traits>
using DecodeMaps = std::conditional_t<Traits::kBoxes, KeyMaps, NoMaps>;

template <class Traits, class T, class Io>
Status make_key_maps(KeyMaps* maps, const AttentionDecodeCall<T, Io>& call) {
  const int64_t sizes[5] = {64, call.page_size, Traits::kHeadDim / 64, call.kv_heads, call.page_count};
  const int64_t strides[4] = {call.slot_stride, 64, call.head_stride, call.page_stride};
  const int box[5] = {64, Traits::kStageKeys, Traits::kHeadDim / 64, 1, 1};
  // A box is 4 KiB side by side: asking for more than it holds costs 7 % (docs/kernels/attention_decode.md).
  constexpr auto kFetch = device::BoxFetch::kAsIs;
  RIDGE_TRY((device::make_map<T, 5>(&maps->k, call.k, sizes, strides, box, kFetch)));
  return device::make_map<T, 5>(&maps->v, call.v, sizes, strides, box, kFetch);
}

/// A warp's stages become full one by one; `parities` has a bit a stage, the parity of its next filling.
template <class Traits>
struct RingBarriers {
  uint64_t full[Traits::kWarps][Traits::kStages];

  __device__ __forceinline__ uint32_t at(int stage) const {
    return device::ptx::shared_address(&full[threadIdx.x >> 5][stage]);
  }
  /// Each warp makes its own; lane 0, which asks for the copies, first.
  __device__ __forceinline__ void init() {
    if constexpr (Traits::kBoxes) {
      if ((threadIdx.x & 31) == 0) {
        for (int stage = 0; stage < Traits::kStages; ++stage) device::ptx::barrier_init(at(stage), 1);
        device::ptx::barrier_init_fence();
      }
      __syncwarp();
    }
  }
  __device__ __forceinline__ void wait(int stage, uint32_t& parities) const {
    while (!device::ptx::barrier_try_wait(at(stage), parities >> stage & 1)) {
    }
    parities ^= 1u << stage;
  }
};

/// The page of 16 keys from `first` on, and the first one's slot in the upper half.
template <class T, class Io>
__device__ __forceinline__ int64_t key_box(const AttentionDecodeCall<T, Io>& call, device::Checks checks,
                                           const int32_t* pages, int32_t sequence, int32_t first) {
  const uint32_t page_size = static_cast<uint32_t>(call.page_size), at = static_cast<uint32_t>(first);
  const uint32_t page = call.page_shift >= 0 ? at >> call.page_shift : at / page_size;
  return int64_t{at - page * page_size} << 32 |
         static_cast<uint32_t>(page_of(call, checks, pages, sequence, page));
}

/// Starts the copy of 16 keys of K and V into a stage of this warp's ring; of keys past a sequence's end too.
template <class Traits>
__device__ __forceinline__ void copy_key_boxes(uint32_t place, const KeyMaps& maps,
                                               const RingBarriers<Traits>& barriers, int stage, int64_t box,
                                               int32_t kv_head) {
  if ((threadIdx.x & 31) != 0) return;
  const uint32_t full = barriers.at(stage);
  const int32_t at[5] = {0, static_cast<int32_t>(box >> 32), 0, kv_head, static_cast<int32_t>(box)};
  device::ptx::barrier_expect(full, Traits::kStageBytes);
  device::ptx::copy_box(place, &maps.k, at, full);
  device::ptx::copy_box(place + Traits::kStageKeys * Traits::kStride * 2, &maps.v, at, full);
}

/// Makes V zeros outside of keys [begin, end) of a stage, which the query does not see: a weight of 0 times
/// what lies there, which nobody may have written, need not be 0.
template <class Traits>
__device__ __forceinline__ void clear_values(unsigned char* values, int32_t begin, int32_t end) {
  constexpr int kVectors = Traits::kHeadDim / 8;
  for (int i = threadIdx.x & 31; i < Traits::kStageKeys * kVectors; i += 32) {
    const int key = Traits::kBoxes ? i / 8 % Traits::kStageKeys : i / kVectors;
    if (key >= begin && key < end) continue;
    reinterpret_cast<uint4*>(values)[Traits::kBoxes ? i : key * (Traits::kStride / 8) + i % kVectors] =
        uint4{};
  }
  device::ptx::fence_proxy_async();  // before the copy engine fills the place again
  __syncwarp();
}

/// The address of 16-byte column `column` (0 or 1) of a row of K or V, and of the same column of a step of 16
/// further along the row.
template <class Traits>
__device__ __forceinline__ uint32_t ring_row(uint32_t rows, int row, int column) {
  return Traits::kBoxes ? rows + device::swizzle_128(row, column)
                        : rows + row * Traits::kStride * 2 + column * 16;
}
template <class Traits>
__device__ __forceinline__ uint32_t ring_step(uint32_t row, int step) {
  return Traits::kBoxes ? (row + step / 4 * (Traits::kStageKeys * 128)) ^ (step % 4 * 32) : row + step * 32;
}

}  // namespace ridge::cuda
