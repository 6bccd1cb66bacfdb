#pragma once
// The call of attention_tiles, how its pages are read, and which rows and keys a block has.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/launch.cuh"
#include "device/reduce.cuh"

namespace ridge::cuda {

/// K or V.
struct PagedSide {
  const void* pages = nullptr;   // [pages, kv_heads, page_size, head_dim] through the strides
  const float* scale = nullptr;  // [pages, kv_heads, page_size], of i8 pages
  DType dtype = kF32;            // f32, f16, bf16, i8
  bool vectors = false;          // keys are whole groups of 8 elements, aligned to 16 bytes
  int64_t page_stride = 0, head_stride = 0, slot_stride = 0;                    // elements
  int64_t scale_page_stride = 0, scale_head_stride = 0, scale_slot_stride = 0;  // elements
};

struct AttentionTilesCall {
  device::Fresh<float> o, lse;               // [rows, heads, head_dim]; [rows, heads] or none
  device::Fresh<const float> q;              // [rows, heads, head_dim]
  PagedSide k, v;                            // this step's tokens included: read after the wait
  device::Fresh<const int32_t> page_table;   // [sequences, max_pages]
  device::Fresh<const int64_t> lengths;      // [sequences]
  device::Fresh<const int64_t> query_start;  // [sequences + 1]; none: one row a sequence
  device::Fresh<float> partials;             // [blocks, kPartialFloats], with splits > 1
  device::Fresh<uint32_t> arrivals;          // [sequences * gridDim.y], 0 between calls; with splits > 1
  int64_t rows = 0, heads = 0, kv_heads = 0, ratio = 0, head_dim = 0, sequences = 0;
  int64_t pages = 0, page_size = 0, max_pages = 0, table_stride = 0, length_stride = 0, start_stride = 0;
  int64_t q_stride = 0, q_head_stride = 0, o_stride = 0, o_head_stride = 0, lse_stride = 0,
          lse_head_stride = 0;
  int64_t window = 0;
  bool narrow = false;  // o is bf16
  int splits = 1;
  float scale = 1, softcap = 0;
};

template <int kHeadDimIn, int kRowsIn, int kKeysIn, int kThreadsIn>
struct TileTraits {
  static constexpr int kHeadDim = kHeadDimIn, kRows = kRowsIn, kKeys = kKeysIn, kThreads = kThreadsIn;
  static constexpr int kRowsOfThread = kRows / (kThreads / 16), kKeysOfThread = kKeys / 16;
  static constexpr int kQuads = kHeadDim / 64;  // column quads of a thread
  static constexpr int kStride =
      kHeadDim + 4;  // floats between rows of Q, K and V, which fall into different banks
  static constexpr int kPartialRow = kHeadDim + 4, kPartialFloats = kRows * kPartialRow;
  static constexpr int kSharedBytes = 4 * ((kRows + 2 * kKeys) * kStride + kRows * (kKeys + 4)) + kKeys * 8;
  static_assert(kHeadDim % 64 == 0 && kRows % (kThreads / 16) == 0 && kKeys % 16 == 0 &&
                kSharedBytes <= 227 * 1024);
};

/// The rows of a block: token first_row + i / ratio, head kv_head * ratio + i % ratio, for i in [begin, end).
struct TileRows {
  int64_t sequence = -1, kv_head = 0, first_row = 0, first_position = 0;
  int64_t begin = 0, end = 0;
};
/// Tiles of keys [begin, end) of a block; `parts` blocks share the rows; keys end at last_key.
struct TileRange {
  int begin = 0, end = 0, part = 0, parts = 1;
  int64_t last_key = 0;
};

/// The running softmax of a thread's rows, and its columns of the output.
template <class Traits>
struct TileState {
  float out[Traits::kRowsOfThread][Traits::kQuads][4] = {};
  float top[Traits::kRowsOfThread],
      sum[Traits::kRowsOfThread] = {};  // base 2; the same in all threads of a row
};

struct RowRange {
  int64_t begin, end;
};
/// Rows of sequence `s` in q, inside of q whatever query_start says.
__device__ __forceinline__ RowRange query_rows(const AttentionTilesCall& call, device::Checks checks,
                                               device::Waited waited, int64_t s) {
  const int64_t* const start = call.query_start.after(waited);
  if (start == nullptr) return {s, s + 1};
  const int64_t from = start[s * call.start_stride], to = start[(s + 1) * call.start_stride];
  (void)checks.fit(FaultKind::kQueryRows, s, 0, from, 0, call.rows);
  (void)checks.fit(FaultKind::kQueryRows, s + 1, 0, to, from, call.rows);
  const int64_t first = max(from, int64_t{0});
  return {first, max(first, min(to, call.rows))};
}

/// Decode: blockIdx.z is the sequence, blockIdx.y the KV head and tile of its heads, blockIdx.x the split.
/// Prefill: `tile` of those of all sequences, found by a warp's scan over their chunks.
template <class Traits>
__device__ __forceinline__ TileRows find_rows(const AttentionTilesCall& call, device::Checks checks,
                                              device::Waited waited, int64_t tile, int64_t kv_head) {
  TileRows rows;
  if (call.query_start.after(waited) == nullptr) {
    const int64_t tiles = ceil_div(call.ratio, int64_t{Traits::kRows});
    rows.sequence = blockIdx.z, rows.kv_head = blockIdx.y / tiles, tile = blockIdx.y % tiles;
  } else {
    rows.kv_head = kv_head;
    const int lane = threadIdx.x & 31;
    int64_t left = tile;  // tiles before the wanted one
    for (int64_t base = 0; base < call.sequences && rows.sequence < 0; base += 32) {
      int64_t mine = 0;
      if (base + lane < call.sequences) {
        const RowRange range = query_rows(call, checks, waited, base + lane);
        mine = ceil_div((range.end - range.begin) * call.ratio, int64_t{Traits::kRows});
      }
      int64_t until = mine;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const int64_t other = __shfl_up_sync(0xffffffffu, until, step);
        if (lane >= step) until += other;
      }
      const unsigned found = __ballot_sync(0xffffffffu, left < until);
      if (found != 0) {
        const int at = __ffs(static_cast<int>(found)) - 1;
        rows.sequence = base + at;
        tile = left - __shfl_sync(0xffffffffu, until - mine, at);
      } else {
        left -= __shfl_sync(0xffffffffu, until, 31);
      }
    }
    if (rows.sequence < 0) return rows;
  }
  const RowRange range = query_rows(call, checks, waited, rows.sequence);
  rows.first_row = range.begin;
  rows.begin = tile * Traits::kRows;
  rows.end = min(rows.begin + Traits::kRows, (range.end - range.begin) * call.ratio);
  // A length beyond the page table is cut one key after it: place_of() makes that one NaN.
  const int64_t told = call.lengths.after(waited)[rows.sequence * call.length_stride],
                room = call.max_pages * call.page_size;
  (void)checks.fit(FaultKind::kLength, rows.sequence, 0, told, 0, room);
  const int64_t length = max(int64_t{0}, min(told, room + 1));
  rows.first_position = length - (range.end - range.begin);
  return rows;
}

/// The tiles that any row of the block sees, or this block's part of them.
template <class Traits>
__device__ __forceinline__ TileRange tiles_of(const AttentionTilesCall& call, const TileRows& rows) {
  const int64_t first = rows.first_position + rows.begin / call.ratio;
  const int64_t last = rows.first_position + (rows.end - 1) / call.ratio;
  TileRange range;
  range.last_key = max(last + 1, int64_t{0});
  const int64_t seen = call.window > 0 ? max(first + 1 - call.window, int64_t{0}) : 0;
  const int begin = static_cast<int>(min(seen, range.last_key) / Traits::kKeys);
  const int end = static_cast<int>(ceil_div(min(range.last_key, int64_t{INT32_MAX}), int64_t{Traits::kKeys}));
  range.parts = max(1, min(call.splits, end - begin));
  range.part = call.splits > 1 ? static_cast<int>(blockIdx.x) : 0;
  range.begin = begin + static_cast<int>(int64_t{end - begin} * range.part / range.parts);
  range.end = begin + static_cast<int>(int64_t{end - begin} * (range.part + 1) / range.parts);
  if (range.part >= range.parts) range.begin = range.end = 0;
  return range;
}

/// Page and slot of a key; page -2 when the table has none for it that is in the cache.
__device__ __forceinline__ int2 place_of(const AttentionTilesCall& call, device::Checks checks,
                                         device::Waited waited, int64_t sequence, int64_t key) {
  const int64_t index = key / call.page_size;
  if (index >= call.max_pages) return {-2, 0};
  const int32_t page = call.page_table.after(waited)[sequence * call.table_stride + index];
  (void)checks.fit(FaultKind::kPage, sequence, index, page, 0, call.pages - 1);
  if (page < 0 || page >= call.pages) return {-2, 0};
  return {page, static_cast<int>(key - index * call.page_size)};
}

__device__ __forceinline__ float page_value(const PagedSide& side, int64_t at, float scale) {
  switch (side.dtype) {
    case kF32:
      return static_cast<const float*>(side.pages)[at];
    case kF16:
      return device::to_float(static_cast<const f16*>(side.pages)[at]);
    case kBF16:
      return device::to_float(static_cast<const bf16*>(side.pages)[at]);
    default:
      return static_cast<float>(static_cast<const int8_t*>(side.pages)[at]) * scale;
  }
}

/// Eight elements.
__device__ __forceinline__ void page_values(const PagedSide& side, int64_t at, float scale, float (&out)[8]) {
  switch (side.dtype) {
    case kF32:
      return device::load8(static_cast<const float*>(side.pages) + at, out);
    case kF16:
      return device::load8(static_cast<const f16*>(side.pages) + at, out);
    case kBF16:
      return device::load8(static_cast<const bf16*>(side.pages) + at, out);
    default: {
      const uint2 codes = *reinterpret_cast<const uint2*>(static_cast<const int8_t*>(side.pages) + at);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        out[i] = static_cast<float>(static_cast<int8_t>((i < 4 ? codes.x : codes.y) >> 8 * (i & 3))) * scale;
    }
  }
}

/// Fills kKeys rows of `shared`. where[i]: page of key i (-1: past the end, zeros; -2: none, NaN) and its
/// slot.
template <class Traits>
__device__ __forceinline__ void load_side(float* shared, const PagedSide& side, const int2* where,
                                          int64_t kv_head, int head_dim) {
  const int group = side.vectors ? 8 : 1, groups = head_dim / group;
  for (int i = threadIdx.x; i < Traits::kKeys * groups; i += Traits::kThreads) {
    const int key = i / groups, column = i % groups * group;
    const int2 place = where[key];
    float* const to = shared + key * Traits::kStride + column;
    float values[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) values[j] = place.x == -1 ? 0 : NAN;
    if (place.x >= 0) {
      const int64_t at =
          place.x * side.page_stride + kv_head * side.head_stride + place.y * side.slot_stride + column;
      float scale = 1;
      if (side.scale)
        scale = side.scale[place.x * side.scale_page_stride + kv_head * side.scale_head_stride +
                           place.y * side.scale_slot_stride];
      if (group == 8)
        page_values(side, at, scale, values);
      else
        values[0] = page_value(side, at, scale);
    }
    if (group == 8)
      device::store8(to, values);
    else
      *to = values[0];
  }
}

}  // namespace ridge::cuda
