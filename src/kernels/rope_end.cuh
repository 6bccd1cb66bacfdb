#pragma once
// What becomes of the rows of q, k and v once a linear has summed them: q and k are turned, k and v go into
// their pages. For streams that have the sums of a tile of rows in shared memory (gemm_stream), whose even
// rows are the first of a pair: interleaved rotations.

#include "device/convert.cuh"
#include "kernels/linear_call.cuh"

namespace ridge::cuda {

/// Rows go where LinearCall says.
struct RowsEnd {
  static constexpr bool kTurns = false;
  int table_bytes() const { return 0; }
};

inline constexpr int64_t kTurnTokens = 8, kTurnPairs = 128;  // at most

template <class K, class V>
struct RopeKvEnd {
  static constexpr bool kTurns = true;
  device::Fresh<float> q;
  device::Fresh<K> k_pages;
  device::Fresh<V> v_pages;
  const int64_t* slots = nullptr;   // these two are read before the wait where they are settled
  const void* positions = nullptr;  // i32 or i64
  const float* frequencies = nullptr;
  int64_t page_size = 0, capacity = 0;           // of a page; of all, in tokens
  int64_t q_strides[2] = {};                     // token, head
  int64_t k_strides[3] = {}, v_strides[3] = {};  // page, head, slot
  int64_t slot_stride = 0, position_stride = 0, frequency_stride = 0;
  int32_t heads = 0, kv_heads = 0, head_dim = 0, pairs = 0;
  bool wide_positions = false, settled = false;
  float magnitude = 1;

  /// Of shared memory: cosine and sine [tokens, pairs], then [tokens] where k and v begin, or -1.
  __host__ __device__ int table_bytes() const { return static_cast<int>(kTurnTokens) * (pairs * 8 + 16); }
  __device__ float2* turns(unsigned char* table) const { return reinterpret_cast<float2*>(table); }
  __device__ int64_t* places(unsigned char* table) const {
    return reinterpret_cast<int64_t*>(table + kTurnTokens * pairs * 8);
  }

  /// Fills the table; the block calls it, a barrier before the first store.
  __device__ void prepare(device::Checks checks, unsigned char* table, int tokens) const {
    for (int i = threadIdx.x; i < tokens * pairs; i += blockDim.x) {
      const int token = i / pairs, pair = i - token * pairs;
      const int64_t at = token * position_stride;
      const double position = wide_positions
                                  ? static_cast<double>(static_cast<const int64_t*>(positions)[at])
                                  : static_cast<double>(static_cast<const int32_t*>(positions)[at]);
      (void)checks.fit(FaultKind::kPosition, token, 0, static_cast<int64_t>(position), 0, kMostPosition);
      double sine, cosine;
      sincos(position * static_cast<double>(frequencies[pair * frequency_stride]), &sine, &cosine);
      turns(table)[i] = {static_cast<float>(cosine * magnitude), static_cast<float>(sine * magnitude)};
    }
    if (static_cast<int>(threadIdx.x) < tokens) {
      const int64_t slot = slots[threadIdx.x * slot_stride];
      (void)checks.fit(FaultKind::kSlot, threadIdx.x, 0, slot, -1, capacity - 1);
      const bool live = slot >= 0 && slot < capacity;
      const int64_t page = slot / page_size, place = slot - page * page_size;
      places(table)[2 * threadIdx.x] = live ? page * k_strides[0] + place * k_strides[2] : -1;
      places(table)[2 * threadIdx.x + 1] = live ? page * v_strides[0] + place * v_strides[2] : -1;
    }
  }

  /// Of a row of all of q, k and v: its sum and that of the other row of its pair.
  __device__ __forceinline__ void store(device::Waited waited, unsigned char* table, int token, int row,
                                        float own, float other) const {
    const int all_head = row / head_dim, d = row - all_head * head_dim;
    if (all_head < heads + kv_heads && d < 2 * pairs) {
      const float2 turn = turns(table)[token * pairs + d / 2];
      own = d & 1 ? own * turn.x + other * turn.y : own * turn.x - other * turn.y;
    }
    if (all_head < heads) {
      q.after(waited)[token * q_strides[0] + all_head * q_strides[1] + d] = own;
    } else if (all_head < heads + kv_heads) {
      if (const int64_t at = places(table)[2 * token]; at >= 0)
        k_pages.after(waited)[at + (all_head - heads) * k_strides[1] + d] = device::from_float<K>(own);
    } else if (const int64_t at = places(table)[2 * token + 1]; at >= 0) {
      v_pages.after(waited)[at + (all_head - heads - kv_heads) * v_strides[1] + d] =
          device::from_float<V>(own);
    }
  }
};

}  // namespace ridge::cuda
