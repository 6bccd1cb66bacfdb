#pragma once
// attention_flash: exact attention of chunks of a prompt over paged K and V of 16-bit elements, f32 queries.
// Limit: the matrix instruction, at two of its operations for one (docs/kernels/attention_flash.md).
//
// A block has kRows query rows of one sequence and KV head (row = token of the chunk x query head of the
// group, heads innermost): 64 for each of its multiplying warpgroups. It walks the keys in tiles of kKeys,
// which start at multiples of kKeys. One warp more asks the copy engine for them: a ring of kSlots, K and V
// of a tile in turns, each a panel for 64 of head_dim, brought in boxes of up to 64 keys of a page. S = Q·Kᵀ
// has q as two terms of T in shared memory, O += P·V the weights as two terms in registers, so that both are
// exact to about 2^-17 of a product. A row's bits do not depend on the rows beside it: a tile in which it
// sees no key multiplies by exactly 1 and adds 0. While one warpgroup is at its softmax, another has the
// matrix instruction.

#include "kernels/attention_flash_tile.cuh"

namespace ridge::cuda {

struct FlashMaps {
  CUtensorMap k, v;      // [pages, kv_heads, page_size, head_dim]
  int32_t box_keys = 8;  // of a box
};

/// Keys of a box: the most, up to 64, that divide a page. 0: fewer than 8 do.
inline int32_t flash_box_keys(int64_t page_size) {
  int32_t keys = 64;
  while (keys >= 8 && page_size % keys != 0) keys /= 2;
  return keys >= 8 ? keys : 0;
}

template <class T>
Status make_flash_maps(FlashMaps* maps, const AttentionTilesCall& call) {
  maps->box_keys = flash_box_keys(call.page_size);
  const int64_t sizes[4] = {call.head_dim, call.page_size, call.kv_heads, call.pages};
  const int box[4] = {64, maps->box_keys, 1, 1};
  const auto make = [&](CUtensorMap* map, const PagedSide& side) {
    const int64_t strides[3] = {side.slot_stride, side.head_stride, side.page_stride};
    return device::make_map<T, 4>(map, static_cast<const T*>(side.pages), sizes, strides, box,
                                  device::BoxFetch::kAsIs);
  };
  RIDGE_TRY(make(&maps->k, call.k));
  return make(&maps->v, call.v);
}

template <class Traits>
struct FlashRing {
  uint64_t full[Traits::kSlots], free[Traits::kSlots];
  uint32_t lost;  // 1: the block sees a key whose page is not in the cache

  __device__ __forceinline__ void init() {
    namespace ptx = device::ptx;
    for (uint64_t& one : full) ptx::barrier_init(ptx::shared_address(&one), 1);
    for (uint64_t& one : free) ptx::barrier_init(ptx::shared_address(&one), Traits::kWorkers / 32);
    lost = 0;
    ptx::barrier_init_fence();
  }
};
/// Where a thread is in the ring: `parity` of the filling that it waits for.
template <class Traits>
struct FlashPlace {
  int slot = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++slot == Traits::kSlots) slot = 0, parity ^= 1;
  }
  __device__ __forceinline__ void wait(const uint64_t* barriers, uint32_t flip = 0) const {
    const uint32_t at = device::ptx::shared_address(barriers + slot);
    while (!device::ptx::barrier_try_wait(at, parity ^ flip)) {
    }
  }
};

/// The first key that any row of the block sees.
__device__ __forceinline__ int64_t first_seen(const AttentionTilesCall& call, const TileRows& rows) {
  const int64_t position = rows.first_position + rows.begin / call.ratio;
  return call.window > 0 ? max(position + 1 - call.window, int64_t{0}) : 0;
}

/// The copying warp: lane i has box i of each tile, those that some row sees.
template <class Traits>
__device__ __forceinline__ void bring_tiles(FlashRing<Traits>& ring, uint32_t slots, const FlashMaps& maps,
                                            const AttentionTilesCall& call, device::Checks checks,
                                            device::Waited waited, const TileRows& rows,
                                            const TileRange& range) {
  namespace ptx = device::ptx;
  const int own = static_cast<int>(threadIdx.x & 31) * maps.box_keys;
  const int64_t first = first_seen(call, rows);
  FlashPlace<Traits> place;
  for (int tile = range.begin; tile < range.end; ++tile) {
    const int64_t key = int64_t{tile} * Traits::kKeys + own;
    const bool live = own < Traits::kKeys && key + maps.box_keys > first && key < range.last_key;
    int2 where = {-1, 0};  // outside of the map: zeros
    if (live) {
      where = place_of(call, checks, waited, rows.sequence, key);
      if (where.x < 0) where = {-1, 0}, ring.lost = 1;
    }
    const int boxes = __popc(__ballot_sync(0xffffffffu, live));
    for (int side = 0; side < 2; ++side) {
      const uint32_t full = ptx::shared_address(ring.full + place.slot);
      place.wait(ring.free, 1);
      if (own == 0) ptx::barrier_expect(full, boxes * maps.box_keys * 128 * Traits::kPanels);
      __syncwarp();
      if (live) {
        const void* const map = side == 0 ? &maps.k : &maps.v;
#pragma unroll
        for (int panel = 0; panel < Traits::kPanels; ++panel) {
          const int32_t at[4] = {panel * 64, where.y, static_cast<int32_t>(rows.kv_head), where.x};
          ptx::copy_box(slots + place.slot * Traits::kSlotBytes + (panel * Traits::kKeys + own) * 128, map,
                        at, full);
        }
      }
      place.next();
    }
  }
}

/// The block's query rows as two terms of T; zeros beyond head_dim and for rows that do not exist.
template <class Traits, class T>
__device__ __forceinline__ void split_queries(unsigned char* to, const AttentionTilesCall& call,
                                              const float* q, const TileRows& rows) {
  constexpr int kPlaces = Traits::kHeadDim / 8, kBatch = 4;  // loads on their way together
  static_assert(Traits::kRows * kPlaces % (Traits::kWorkers * kBatch) == 0);
  const auto ratio = static_cast<uint32_t>(call.ratio);
  const auto before = static_cast<uint32_t>(rows.begin % call.ratio);  // of the first row's token
  const int live = static_cast<int>(rows.end - rows.begin);
  q += (rows.first_row + rows.begin / call.ratio) * call.q_stride +
       rows.kv_head * call.ratio * call.q_head_stride;
  for (int first = threadIdx.x; first < Traits::kRows * kPlaces; first += Traits::kWorkers * kBatch) {
    float4 loaded[kBatch][2] = {};
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      const int i = first + n * Traits::kWorkers, row = i / kPlaces, place = i % kPlaces;
      if (row >= live || place * 8 >= call.head_dim) continue;
      const uint32_t at = before + row, token = at / ratio;
      const float4* const from = reinterpret_cast<const float4*>(
          q + token * call.q_stride + (at - token * ratio) * call.q_head_stride + place * 8);
      loaded[n][0] = from[0], loaded[n][1] = from[1];
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      const int i = first + n * Traits::kWorkers, row = i / kPlaces, place = i % kPlaces;
      const float4 a = loaded[n][0], b = loaded[n][1];
      uint4 terms[2];
      device::split_terms<T>(a.x, a.y, terms[0].x, terms[1].x);
      device::split_terms<T>(a.z, a.w, terms[0].y, terms[1].y);
      device::split_terms<T>(b.x, b.y, terms[0].z, terms[1].z);
      device::split_terms<T>(b.z, b.w, terms[0].w, terms[1].w);
#pragma unroll
      for (int term = 0; term < 2; ++term)
        *reinterpret_cast<uint4*>(to + term * Traits::kTermBytes + place / 8 * (Traits::kRows * 128) +
                                  device::swizzle_128(row, place % 8)) = terms[term];
    }
  }
}

/// Infinities are NaN: which of them a sum of terms becomes depends on the terms.
__device__ __forceinline__ float finite_or_nan(float v) {
  return isinf(v) ? NAN : v;
}

template <class Traits, class T>
__device__ __forceinline__ void store_flash_rows(FlashState<Traits>& state, const AttentionTilesCall& call,
                                                 device::Waited waited, const TileRows& rows, bool lost) {
  const int lane = threadIdx.x & 31, t = lane & 3;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float sum = device::warp_reduce<device::Sum, 4>(state.sum[row]);
    const int64_t at = rows.begin + (threadIdx.x >> 5) * 16 + (lane >> 2) + row * 8;
    if (at >= rows.end) continue;
    const int64_t token = rows.first_row + at / call.ratio,
                  head = rows.kv_head * call.ratio + at % call.ratio;
    // A row that sees nothing is 0; NaN stays.
    const float scale = lost ? NAN : (sum > 0 ? 1 / sum : sum) / kWeightScale<T>;
    const int64_t to = token * call.o_stride + head * call.o_head_stride + t * 2;
#pragma unroll
    for (int j = 0; j < Traits::kHeadDim / 8; ++j) {
      if (j * 8 >= call.head_dim) break;
      const float a = finite_or_nan(state.out[4 * j + 2 * row]) * scale,
                  b = finite_or_nan(state.out[4 * j + 2 * row + 1]) * scale;
      *reinterpret_cast<float2*>(call.o.after(waited) + to + j * 8) = {a, b};
    }
    float* const lse = call.lse.after(waited);
    if (lse && t == 0)
      lse[token * call.lse_stride + head * call.lse_head_stride] =
          lost ? NAN : (state.top[row] + log2f(sum)) * 0.693147181f;
  }
}

/// A warpgroup's 64 rows over all tiles of the block.
template <class Traits, class T>
__device__ __forceinline__ void walk_tiles(FlashState<Traits>& state, FlashRing<Traits>& ring,
                                           unsigned char* shared, const AttentionTilesCall& call,
                                           const TileRows& rows, const TileRange& range) {
  namespace ptx = device::ptx;
  const uint32_t at = __shfl_sync(0xffffffffu, ptx::shared_address(shared), 0);
  const uint32_t group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), slots = at + 2 * Traits::kTermBytes;
  const uint64_t q = device::matrix_descriptor(at + group * 8192);
  // Keys that all rows of the block see: [seen_first, seen_last).
  const int64_t seen_last = rows.first_position + rows.begin / call.ratio + 1,
                newest = rows.first_position + (rows.end - 1) / call.ratio + 1,
                seen_first = call.window > 0 ? newest - call.window : 0, first = first_seen(call, rows);
  const auto leave = [&](const FlashPlace<Traits>& place) {
    if ((threadIdx.x & 31) == 0) ptx::barrier_arrive(ptx::shared_address(ring.free + place.slot));
  };
  FlashPlace<Traits> place;
  for (int tile = range.begin; tile < range.end; ++tile) {
    const int first_key = tile * Traits::kKeys;
    const bool masked = first_key < seen_first || int64_t{first_key} + Traits::kKeys > seen_last;
    float s[Traits::kKeys / 2];
    place.wait(ring.full);
    flash_scores<Traits, T>(s, q, device::matrix_descriptor(slots + place.slot * Traits::kSlotBytes));
    leave(place);
    place.next();
    if (masked)
      flash_scale<Traits, true>(s, state, call, first_key);
    else
      flash_scale<Traits, false>(s, state, call, first_key);
    flash_weigh<Traits>(s, state);
    place.wait(ring.full);
    if (masked)
      mend_values<Traits, T>(state, shared + 2 * Traits::kTermBytes + place.slot * Traits::kSlotBytes,
                             first_key, static_cast<int>(max(first - first_key, int64_t{0})),
                             static_cast<int>(min(range.last_key - first_key, int64_t{Traits::kKeys})));
    const uint64_t v =
        device::panels_descriptor(slots + place.slot * Traits::kSlotBytes, Traits::kKeys * 128);
    flash_values<Traits, T>(state, s, v);
    leave(place);
    place.next();
  }
}

template <class Traits, class T>
__global__ __launch_bounds__(Traits::kThreads, 1) void attention_flash(device::Upstream upstream,
                                                                       const __grid_constant__ FlashMaps maps,
                                                                       AttentionTilesCall call) {
  extern __shared__ __align__(1024) unsigned char flash_memory[];
  __shared__ FlashRing<Traits> ring;
  if (threadIdx.x == 0) ring.init();
  __syncthreads();
  upstream.release_next();
  const auto waited = upstream.wait();
  // The longest rows first: of a sequence the last ones see the most keys.
  const int64_t block = int64_t{gridDim.x} - 1 - blockIdx.x;
  TileRows rows = find_rows<Traits>(call, upstream, waited, block / call.kv_heads, block % call.kv_heads);
  if (rows.sequence < 0) return;
  const TileRange range = tiles_of<Traits>(call, rows);
  if (threadIdx.x >= Traits::kWorkers) {
    if constexpr (Traits::kGiveRegisters) device::ptx::give_registers<24>();
    if (threadIdx.x >= Traits::kWorkers + 32) return;
    bring_tiles<Traits>(ring, device::ptx::shared_address(flash_memory) + 2 * Traits::kTermBytes, maps, call,
                        upstream, waited, rows, range);
    return;
  }
  if constexpr (Traits::kGiveRegisters) device::ptx::take_registers<240>();
  split_queries<Traits, T>(flash_memory, call, call.q.after(waited), rows);
  device::ptx::fence_proxy_async();
  device::ptx::sync_some(1, Traits::kWorkers);
  FlashState<Traits> state;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    // A row that does not exist sees what the last one sees: it needs no mask of its own.
    const int64_t at =
        min(rows.begin + (threadIdx.x >> 5) * 16 + (threadIdx.x >> 2 & 7) + row * 8, rows.end - 1);
    const int64_t position = rows.first_position + at / call.ratio;
    state.last[row] = static_cast<int>(max(position + 1, int64_t{0}));
    state.first[row] = call.window > 0 ? static_cast<int>(max(position + 1 - call.window, int64_t{0})) : 0;
  }
  walk_tiles<Traits, T>(state, ring, flash_memory, call, rows, range);
  store_flash_rows<Traits, T>(state, call, waited, rows, ring.lost != 0);
}

template <class Traits, class T>
static Status launch_attention_flash(cudaStream_t stream, const AttentionTilesCall& call) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      attention_flash<Traits, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of attention_flash"));
  FlashMaps maps;
  RIDGE_TRY(make_flash_maps<T>(&maps, call));
  device::LaunchShape shape;
  // As many blocks as there can be; the device knows how long the chunks are.
  const int64_t tiles = ceil_div(call.rows * call.ratio, int64_t{Traits::kRows}) + call.sequences;
  shape.grid.x = static_cast<unsigned>(tiles * call.kv_heads);
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "attention_flash", attention_flash<Traits, T>, maps, call);
}

}  // namespace ridge::cuda
