#pragma once
// The call of a decode attention and how its work is divided on the device.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/launch.cuh"
#include "device/mma.cuh"
#include "device/reduce.cuh"

namespace ridge::cuda {

/// T: type of K and V. Io: of q and out; f32 queries and probabilities are multiplied as two terms of T each.
template <class T, class Io = T>
struct AttentionDecodeCall {
  device::Fresh<Io> out;           // [batch, heads, head_dim]; of bf16 with `narrow`
  device::Fresh<float> lse;        // [batch, heads] natural, or none; -inf for an empty sequence
  device::Fresh<const Io> q;       // [batch, heads, head_dim]
  const T* k = nullptr;            // pages of [page_size, kv_heads, head_dim] through the strides below.
  const T* v = nullptr;            // Read before the wait, but for the last `unsettled` tokens of a sequence.
  const int32_t* pages = nullptr;  // [batch, table_stride]; only entries of live keys are used as addresses
  const int64_t* lengths = nullptr;  // [batch]; 0 gives zeros
  device::Fresh<float> partials;     // decode_partial_bytes()
  device::Fresh<uint32_t>
      arrivals;        // [batch * kv_heads * head tiles], 0 before the first call; every call leaves 0
  int64_t groups = 0;  // kv_heads * ceil(ratio / Traits::kRows)
  int64_t batch = 0, heads = 0, kv_heads = 0, ratio = 0;  // ratio: heads / kv_heads
  int64_t page_count = 0;                                 // of the pool
  int64_t page_size = 0, page_stride = 0, slot_stride = 0, head_stride = 0, table_stride = 0;  // elements
  int64_t q_stride = 0, out_stride = 0;
  int64_t window = 0;  // the last `window` keys are seen; 0: all
  int32_t unsettled =
      INT32_MAX;                 // tokens at a sequence's end that launches of this step may still be writing
  bool lengths_settled = false;  // lengths and pages were complete before the step
  bool narrow = false;           // out is bf16 where Io is f32
  bool whole_pages = false;      // page_size is a multiple of 16
  int page_shift = -1;           // log2(page_size), or -1
  float scale = 1, softcap = 0;  // softcap 0: none
  int64_t max_pages = 0;         // entries of a sequence in `pages`
};

template <int kHeadDimIn, int kRowsIn, int kWarpsIn, int kStagesIn, int kBlocksPerSmIn, int kLeastTilesIn = 1,
          bool kBoxesIn = false>
struct DecodeTraits {
  static constexpr int kHeadDim = kHeadDimIn, kRows = kRowsIn;  // kRows: query heads of a unit, 8 or 16
  // Tiles of a share, at least: to join shares takes as long as a few tiles.
  static constexpr int kLeastTiles = kLeastTilesIn;
  static constexpr int kWarps = kWarpsIn, kStages = kStagesIn, kBlocksPerSm = kBlocksPerSmIn,
                       kThreads = kWarps * 32;
  // Matrix steps loaded together: registers for latency.
  static constexpr int kBatch = kHeadDim / 16 < 8 ? kHeadDim / 16 : kRows == 16 && kHeadDim > 128 ? 4 : 8;
  static constexpr int kStageKeys = 16, kTileKeys = kStageKeys * kWarps;
  // The copy engine brings 16 keys at once, in rows of 64 elements that it swizzles; else rows are padded.
  static constexpr bool kBoxes = kBoxesIn;
  static constexpr int kStride = kHeadDim + (kBoxes ? 0 : 8);  // elements between keys in the ring
  static constexpr int kStageBytes = 2 * kStageKeys * kStride * 2;
  static constexpr int kPartialRow = kHeadDim + 4, kPartialFloats = kRows * kPartialRow;
  struct Join {
    float top[kWarps][kRows], sum[kWarps][kRows];
    float out[kWarps][kRows][kHeadDim];
  };
  static constexpr int kRings = kWarps * kStages * kStageBytes, kJoin = static_cast<int>(sizeof(Join));
  static constexpr int kRingBytes = kRings > kJoin ? kRings : kJoin;
  static_assert(!kBoxes || kHeadDim % 64 == 0);
  static_assert(kHeadDim % 16 == 0 && (kRows == 8 || kRows == 16) && kStages >= 2);
};

/// Blocks of a call: whole shares, at least one.
template <class Traits>
int64_t decode_blocks(int multiprocessors, int64_t groups) {
  const int64_t resident = int64_t{multiprocessors} * Traits::kBlocksPerSm;
  return groups > resident ? groups : resident / groups * groups;
}
/// Bytes of `partials`: two slots a block, for the unit that began before its share and for the one that ends
/// after it.
template <class Traits>
int64_t decode_partial_bytes(int multiprocessors, int64_t groups) {
  return decode_blocks<Traits>(multiprocessors, groups) * 2 * Traits::kPartialFloats * 4;
}

__device__ __forceinline__ int32_t ceil_div_32(int32_t a, int32_t b) {
  return (a + b - 1) / b;
}

/// The keys of a sequence; in the checked build no more than its pages can be.
template <class T, class Io>
__device__ __forceinline__ int64_t length_of(const AttentionDecodeCall<T, Io>& call, device::Checks checks,
                                             int64_t sequence) {
  return checks.fit(FaultKind::kLength, sequence, 0, call.lengths[sequence], 0,
                    call.page_count > 0 ? call.max_pages * call.page_size : 0);
}
/// The page of the cache that is `index` of a sequence, whose entries `pages` are.
template <class T, class Io>
__device__ __forceinline__ int32_t page_of(const AttentionDecodeCall<T, Io>& call, device::Checks checks,
                                           const int32_t* pages, int64_t sequence, uint32_t index) {
  return static_cast<int32_t>(
      checks.fit(FaultKind::kPage, sequence, index, pages[index], 0, call.page_count - 1));
}

/// The first key that a query at the end of `length` keys sees.
template <class T, class Io>
__device__ __forceinline__ int32_t first_seen(const AttentionDecodeCall<T, Io>& call, int32_t length) {
  return call.window > 0 && length > call.window ? length - static_cast<int32_t>(call.window) : 0;
}

/// A block's part of one unit. Keys and tiles are counted in 32 bits: 2^31 tiles are more than any memory
/// holds.
struct DecodePiece {
  int32_t sequence, unit, kv_head, head, rows;  // head: the first of `rows` query heads
  int32_t unit_begin, tile_end;                 // in the line of tiles: the unit's start, this piece's end
  int32_t begin_key, end_key;                   // the sequence's live keys (begin: of its window)
  int32_t first_key, last_key;      // this piece's; first_key is a multiple of 16, maybe below begin_key
  int32_t first_share, last_share;  // that hold the unit
};

/// The line of tiles and this block's share of it: the first `longer` shares have one tile more. Share s is
/// worked on by blocks s * groups + group.
struct DecodePlan {
  const int32_t* sequence_begin;  // shared: tiles before sequence i; [batch + 1]
  int32_t tiles_each, longer, begin, end, groups, share, group;
  int32_t sequence;  // the one that holds the tile last asked for

  __device__ int32_t share_begin(int32_t s) const { return s * tiles_each + min(s, longer); }
  __device__ int32_t share_of(int32_t tile) const {
    const int32_t border = longer * (tiles_each + 1);
    return tile < border ? tile / (tiles_each + 1) : longer + (tile - border) / tiles_each;
  }
  /// Where the block of share `s` and this group leaves its sums of the unit that begins at `unit_begin`.
  __device__ int64_t slot(int32_t s, int32_t unit_begin) const {
    return 2 * (int64_t{s} * groups + group) + (share_begin(s) > unit_begin ? 0 : 1);
  }

  template <class Traits, class T, class Io>
  __device__ DecodePiece piece_at(const AttentionDecodeCall<T, Io>& call, device::Checks checks,
                                  int32_t tile) {
    while (sequence_begin[sequence + 1] <= tile) ++sequence;
    const int32_t tiles = sequence_begin[sequence + 1] - sequence_begin[sequence];
    const int32_t ratio = static_cast<int32_t>(call.ratio), head_tiles = ceil_div_32(ratio, Traits::kRows);
    DecodePiece p;
    p.sequence = sequence;
    p.unit = sequence * groups + group;
    p.kv_head = head_tiles == 1 ? group : group / head_tiles;
    const int32_t head_tile = group - p.kv_head * head_tiles;
    p.head = p.kv_head * ratio + head_tile * Traits::kRows;
    p.rows = min(Traits::kRows, ratio - head_tile * Traits::kRows);
    p.unit_begin = sequence_begin[sequence];
    p.tile_end = min(end, p.unit_begin + tiles);
    p.end_key = static_cast<int32_t>(length_of(call, checks, sequence));
    p.begin_key = first_seen(call, p.end_key);
    const int32_t base = p.begin_key / Traits::kStageKeys * Traits::kStageKeys;
    p.first_key = base + (tile - p.unit_begin) * Traits::kTileKeys;
    p.last_key = min(p.end_key, base + (p.tile_end - p.unit_begin) * Traits::kTileKeys);
    p.first_share = share_of(p.unit_begin);
    p.last_share = share_of(p.unit_begin + tiles - 1);
    return p;
  }
};

/// Tiles of one group of a sequence.
template <class Traits, class T, class Io>
__device__ __forceinline__ int32_t sequence_tiles(const AttentionDecodeCall<T, Io>& call,
                                                  device::Checks checks, int64_t sequence) {
  const int32_t length = static_cast<int32_t>(max(int64_t{0}, length_of(call, checks, sequence)));
  const int32_t skipped = first_seen(call, length) / Traits::kStageKeys * Traits::kStageKeys;
  return ceil_div_32(length - skipped, Traits::kTileKeys);
}

/// Gives up to 32 sequences shares of their own where they then are hardly longer than even ones: a block
/// whose share two sequences have begins anew at their border, for about 4 us, and all wait for it. Returns
/// the share's tiles, and pads the line's sequences to whole shares (no keys are behind the padding), or 0. A
/// warp calls it; a lane tries a size, then has a sequence.
__device__ __forceinline__ int32_t align_shares(int32_t* sequence_begin, int32_t batch, int32_t shares,
                                                int32_t least) {
  const int lane = threadIdx.x & 31;
  const int32_t even = max(least, ceil_div_32(sequence_begin[batch], shares)), size = even + lane;
  int32_t needed = 0;
  for (int32_t s = 0; s < batch; ++s) needed += ceil_div_32(sequence_begin[s + 1] - sequence_begin[s], size);
  const unsigned fits = __ballot_sync(0xffffffffu, needed <= shares && lane <= 1 + even / 8);
  if (fits == 0) return 0;
  const int32_t chosen = __shfl_sync(0xffffffffu, size, __ffs(static_cast<int>(fits)) - 1);
  int32_t until = lane < batch ? ceil_div_32(sequence_begin[lane + 1] - sequence_begin[lane], chosen) : 0;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int32_t other = __shfl_up_sync(0xffffffffu, until, step);
    if (lane >= step) until += other;
  }
  if (lane < batch) sequence_begin[lane + 1] = until * chosen;
  return chosen;
}

/// Sums the tiles of all sequences into `sequence_begin` and finds this block's share. All threads call it.
template <class Traits, class T, class Io>
__device__ DecodePlan plan_decode(const AttentionDecodeCall<T, Io>& call, device::Checks checks,
                                  int32_t* sequence_begin) {
  __shared__ int32_t warp_sums[Traits::kWarps];
  __shared__ int32_t start, aligned;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, batch = static_cast<int32_t>(call.batch);
  const int32_t each = ceil_div_32(batch, Traits::kThreads), first = threadIdx.x * each,
                last = min(batch, first + each);
  int32_t mine = 0;
  for (int32_t s = first; s < last; ++s) mine += sequence_tiles<Traits>(call, checks, s);
  int32_t before = mine;  // inclusive over the lanes, then exclusive
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int32_t other = __shfl_up_sync(0xffffffffu, before, step);
    if (lane >= step) before += other;
  }
  if (lane == 31) warp_sums[warp] = before;
  __syncthreads();
  before -= mine;
  for (int w = 0; w < warp; ++w) before += warp_sums[w];
  for (int32_t s = first; s < last; ++s) {
    sequence_begin[s] = before;
    before += sequence_tiles<Traits>(call, checks, s);
  }
  if (last == batch && first < last) sequence_begin[batch] = before;
  __syncthreads();

  DecodePlan plan;
  plan.sequence_begin = sequence_begin;
  plan.groups = static_cast<int32_t>(call.groups);
  plan.share = static_cast<int32_t>(blockIdx.x) / plan.groups;
  plan.group = static_cast<int32_t>(blockIdx.x) - plan.share * plan.groups;
  const int32_t most = static_cast<int32_t>(gridDim.x) / plan.groups;
  int32_t share_size = 0;
  if (batch > 1 && batch <= 32) {
    if (warp == 0) {
      const int32_t size = align_shares(sequence_begin, batch, most, Traits::kLeastTiles);
      if (lane == 0) aligned = size;
    }
    __syncthreads();
    share_size = aligned;
  }
  const int32_t total = sequence_begin[batch];
  const int32_t shares =
      max(1, share_size > 0 ? total / share_size : min(most, ceil_div_32(total, Traits::kLeastTiles)));
  plan.tiles_each = total / shares;
  plan.longer = total - plan.tiles_each * shares;
  const bool works = plan.share < shares;
  plan.begin = works ? plan.share_begin(plan.share) : 0;
  plan.end = works ? plan.share_begin(plan.share + 1) : 0;
  for (int32_t s = first; s < last; ++s)
    if (sequence_begin[s] <= plan.begin && plan.begin < sequence_begin[s + 1]) start = s;
  __syncthreads();
  plan.sequence = plan.begin < plan.end ? start : 0;
  return plan;
}

/// Zeros, and -inf as log-sum-exp, for the sequences without keys: those that have no tile, so that nobody
/// fetches a length again at the end.
template <class Traits, class T, class Io>
__device__ __forceinline__ void store_empty(const AttentionDecodeCall<T, Io>& call, device::Waited waited,
                                            const DecodePlan& plan) {
  float* const lse = call.lse.after(waited);
  for (int64_t s = blockIdx.x; s < call.batch; s += gridDim.x) {
    if (plan.sequence_begin[s + 1] > plan.sequence_begin[s]) continue;
    const int64_t row = s * call.out_stride;
    for (int64_t i = threadIdx.x; i < call.heads * Traits::kHeadDim; i += Traits::kThreads)
      if (call.narrow)
        reinterpret_cast<bf16*>(call.out.after(waited))[row + i] = device::from_float<bf16>(0);
      else
        call.out.after(waited)[row + i] = device::from_float<Io>(0);
    if (lse)
      for (int64_t h = threadIdx.x; h < call.heads; h += Traits::kThreads)
        lse[s * call.heads + h] = -INFINITY;
  }
}

}  // namespace ridge::cuda
