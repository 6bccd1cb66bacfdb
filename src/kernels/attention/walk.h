#pragma once
// A tile of query rows walks over its keys with an online softmax (Milakov and Gimelshein 2018; tiling as in
// Dao et al. 2022, "FlashAttention"; splits as in Dao et al. 2023, "Flash-Decoding"). Included by *_cpu.cc
// files alone.
//
// The numerics of a row depend on absolute positions alone: keys come in blocks of 64 and splits of 512 that
// start at multiples of their size; every split starts from an empty sum, and splits are merged first to
// last. So a row has the same bits whatever its tile, batch, chunk, thread or operator.

#include <atomic>

#include "base/stop.h"
#include "kernels/attention/block.h"
#include "kernels/attention/paged.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge::RIDGE_ISA::attention {

inline constexpr int64_t kSplit = 512;        // keys
inline constexpr int64_t kMaxRows = 128;      // rows of a tile
inline constexpr int64_t kTileFloats = 8192;  // of q, and of o: 32 KiB each

inline int64_t padded_dim(int64_t head_dim) {
  return (head_dim + simd::kLanes - 1) / simd::kLanes * simd::kLanes;
}
/// How many rows a tile may have.
inline int64_t tile_rows(int64_t head_dim) {
  return std::min(kMaxRows, kTileFloats / padded_dim(std::max<int64_t>(head_dim, 1)));
}

/// Consecutive queries of a sequence and consecutive query heads of one kv head: rows [queries][heads].
struct Tile {
  int64_t sequence, kv_head;
  int64_t token;  // row of q and o of the first query
  int64_t queries;
  int64_t position;  // of the first query; below 0: it sees nothing
  int64_t head, heads;
  int64_t rows() const { return queries * heads; }
};

/// Unnormalised outputs of rows: o [rows][padded], largest score and sum of weights per row.
struct Partial {
  float* o;
  float* largest;
  float* sum;
};

/// Where the live keys [from, to) of a block lie, and their scales (0 for dead keys).
struct BlockKeys {
  int from = 0, to = 0;
  const void *k_rows[kBlock], *v_rows[kBlock];
  alignas(64) float k_scale[kBlock], v_scale[kBlock];
};

struct Scratch {
  alignas(64) float keys[kMaxHeadDim * kBlock];                  // [head_dim][64]
  alignas(64) float values[kBlock * kMaxHeadDim];                // [64][padded]
  alignas(64) float q[kTileFloats];                              // [rows][head_dim], times scale
  alignas(64) float split_o[kTileFloats], total_o[kTileFloats];  // [rows][padded]
  float split_largest[kMaxRows], split_sum[kMaxRows], total_largest[kMaxRows], total_sum[kMaxRows];
  BlockKeys blocks[2];  // this one and the next
  Partial split() { return {split_o, split_largest, split_sum}; }
  Partial total() { return {total_o, total_largest, total_sum}; }
};

inline void make_empty(const Partial& p, int64_t rows, int64_t padded) {
  std::memset(p.o, 0, static_cast<size_t>(rows * padded) * sizeof(float));
  std::fill_n(p.largest, rows, -INFINITY);
  std::fill_n(p.sum, rows, 0.0f);
}

/// Folds a later split into the sum of those before it. An empty side leaves the other's bits alone.
inline void merge(const Partial& total, const Partial& later, int64_t rows, int64_t padded) {
  for (int64_t r = 0; r < rows; ++r) {
    if (later.sum[r] == 0) continue;
    float* o = total.o + r * padded;
    const float* other = later.o + r * padded;
    if (total.sum[r] == 0) {
      std::memcpy(o, other, static_cast<size_t>(padded) * sizeof(float));
      total.largest[r] = later.largest[r], total.sum[r] = later.sum[r];
      continue;
    }
    const float largest = std::max(total.largest[r], later.largest[r]);
    alignas(64) float factors[16] = {total.largest[r] - largest, later.largest[r] - largest};
    simd::store(factors, simd::exp(simd::load(factors)));
    const auto mine = simd::set1(factors[0]), its = simd::set1(factors[1]);
    for (int64_t i = 0; i < padded; i += simd::kLanes)
      simd::store(o + i, simd::fma(simd::load(other + i), its, simd::load(o + i) * mine));
    total.largest[r] = largest;
    total.sum[r] = std::fma(later.sum[r], factors[1], total.sum[r] * factors[0]);
  }
}

/// Scores [64] of one row, keys [from, to), become weights e^(score - largest); the row's largest score and
/// sum are brought up to date. Returns the factor for what the row summed before.
inline float soften(const PagedAttention& a, const BlockKeys& block, int from, int to, float* scores,
                    float* largest, float* sum) {
  const int first = from / simd::kLanes, last = (to + simd::kLanes - 1) / simd::kLanes;
  const auto dead = simd::set1(-INFINITY);
  simd::F32 score[kKeyVectors], peak = dead;
  for (int v = first; v < last; ++v) {
    auto x = simd::load(scores + v * simd::kLanes);
    if (a.k_scale) x = x * simd::load(block.k_scale + v * simd::kLanes);
    if (a.softcap > 0) x = simd::set1(a.softcap) * simd::tanh(x / simd::set1(a.softcap));
    score[v] = simd::keep_range(x, std::max(0, from - v * simd::kLanes),
                                std::min<int>(simd::kLanes, to - v * simd::kLanes), dead);
    peak = simd::max(peak, score[v]);
  }
  const float before = *largest;
  *largest = std::max(before, simd::max_of(peak));
  // Where every score so far is -inf, a weight must come out as 0 and not as e^(-inf + inf).
  const float origin = *largest == -INFINITY ? 0.0f : *largest;
  simd::F32 total = simd::zero();
  for (int v = first; v < last; ++v) {
    auto weight = simd::exp(score[v] - simd::set1(origin));
    total = total + weight;
    if (a.v_scale) weight = weight * simd::load(block.v_scale + v * simd::kLanes);
    simd::store(scores + v * simd::kLanes, weight);
  }
  float rescale = 1.0f;
  if (before != *largest) {
    alignas(64) float change[16] = {before - origin};
    simd::store(change, simd::exp(simd::load(change)));
    rescale = change[0];
  }
  *sum = std::fma(*sum, rescale, simd::sum(total));
  return rescale;
}

/// R rows from `row` on, all of which see keys [from, to) of the block.
template <int R, class Values>
void attend_rows(const PagedAttention& a, Scratch& s, const BlockKeys& block, const Values& values,
                 int64_t row, int from, int to) {
  const int64_t head_dim = a.q.dim(2), padded = padded_dim(head_dim);
  alignas(64) float scores[R * kBlock];
  float rescale[R];
  const int last = (to + simd::kLanes - 1) / simd::kLanes;
  for (int v = from / simd::kLanes; v < last;) {
    const float* q = s.q + row * head_dim;
    if (v + kVectors <= last)
      score<R, kVectors>(q, s.keys, head_dim, v, scores), v += kVectors;
    else
      score<R, 1>(q, s.keys, head_dim, v, scores), ++v;
  }
  const Partial split = s.split();
  for (int r = 0; r < R; ++r)
    rescale[r] =
        soften(a, block, from, to, scores + r * kBlock, split.largest + row + r, split.sum + row + r);
  float* o = split.o + row * padded;
  constexpr int64_t kWide = kVectors * simd::kLanes;
  int64_t column = 0;
  for (; column + kWide <= padded; column += kWide)
    accumulate<R, kVectors>(scores, rescale, values, from, to, column, padded, o);
  for (; column < padded; column += simd::kLanes)
    accumulate<R, 1>(scores, rescale, values, from, to, column, padded, o);
}

/// All rows of the tile against the block at `start`. Rows share a register block when they see the same keys
/// of it.
template <class Values>
void attend_block(const PagedAttention& a, const Tile& tile, Scratch& s, const BlockKeys& block,
                  const Values& values, int64_t start) {
  const auto range = [&](int64_t query) {
    const KeyRange keys = visible_keys(tile.position + query, a.window);
    return KeyRange{std::clamp<int64_t>(keys.first - start, 0, kBlock),
                    std::clamp<int64_t>(keys.last - start, 0, kBlock)};
  };
  for (int64_t row = 0; row < tile.rows();) {
    int64_t query = row / tile.heads;
    const KeyRange keys = range(query);
    int64_t end = (query + 1) * tile.heads;
    if (keys.first >= keys.last) {
      row = end;
      continue;
    }
    while (end < row + kRows && ++query < tile.queries) {
      const KeyRange next = range(query);
      if (next.first != keys.first || next.last != keys.last) break;
      end += tile.heads;
    }
    const auto count = static_cast<int>(std::min<int64_t>(kRows, end - row));
    simd::with_size<kRows>(count, [&]<int R>(std::integral_constant<int, R>) {
      attend_rows<R>(a, s, block, values, row, static_cast<int>(keys.first), static_cast<int>(keys.last));
    });
    row += count;
  }
}

/// Keys [from, to) of the block at `start`.
template <class K, class V>
void find_keys(const PagedAttention& a, const Tile& tile, int64_t start, int64_t from, int64_t to,
               BlockKeys& block) {
  const int64_t page_size = a.k_pages.dim(2);
  const auto* pages = a.page_table.row<int32_t>(tile.sequence);
  block.from = static_cast<int>(from), block.to = static_cast<int>(to);
  // Scales of dead keys in a live vector are read too.
  if (a.k_scale) std::memset(block.k_scale, 0, sizeof block.k_scale);
  if (a.v_scale) std::memset(block.v_scale, 0, sizeof block.v_scale);
  int64_t index = (start + from) / page_size, offset = (start + from) % page_size;
  for (int64_t key = from; key < to; ++index, offset = 0) {
    const int64_t page = pages[index * a.page_table.stride(1)];
    const K* k = a.k_pages.row<K>(page) + tile.kv_head * a.k_pages.stride(1) + offset * a.k_pages.stride(2);
    const V* v = a.v_pages.row<V>(page) + tile.kv_head * a.v_pages.stride(1) + offset * a.v_pages.stride(2);
    const int64_t count = std::min(to - key, page_size - offset);
    for (int64_t i = 0; i < count; ++i, k += a.k_pages.stride(2), v += a.v_pages.stride(2))
      block.k_rows[key + i] = k, block.v_rows[key + i] = v;
    const auto copy_scales = [&](const Tensor& scale, float* out) {
      if (!scale) return;
      const float* from_page =
          scale.row<float>(page) + tile.kv_head * scale.stride(1) + offset * scale.stride(2);
      for (int64_t i = 0; i < count; ++i) out[key + i] = from_page[i * scale.stride(2)];
    };
    copy_scales(a.k_scale, block.k_scale);
    copy_scales(a.v_scale, block.v_scale);
    key += count;
  }
}

/// The tile's q times scale.
inline void load_queries(const PagedAttention& a, const Tile& tile, Scratch& s) {
  const int64_t head_dim = a.q.dim(2);
  const auto scale = simd::set1(a.scale);
  for (int64_t row = 0; row < tile.rows(); ++row) {
    const float* q =
        a.q.row<float>(tile.token + row / tile.heads) + (tile.head + row % tile.heads) * a.q.stride(1);
    float* to = s.q + row * head_dim;
    simd::for_each(head_dim,
                   [&](int64_t i, int live) { simd::store(to + i, simd::load(q + i, live) * scale, live); });
  }
}

/// The keys that any row of the tile sees.
inline KeyRange tile_keys(const PagedAttention& a, const Tile& tile) {
  const int64_t first = std::max<int64_t>(tile.position, 0), last = tile.position + tile.queries - 1;
  if (last < first) return {0, 0};
  return {visible_keys(first, a.window).first, visible_keys(last, a.window).last};
}

/// Transposes the keys of a block while its values and the next block's keys are on their way.
template <class K, class V>
void load_keys(const BlockKeys& block, const BlockKeys& next, int64_t head_dim, float* keys) {
  constexpr int kGroup = simd::kLanes;
  const auto fetch = [&](const BlockKeys& b, int group, const void* const* rows, int64_t bytes) {
    prefetch_rows(rows, std::max(b.from, group), std::min(b.to, group + kGroup), bytes);
  };
  for (int group = 0; group < kBlock; group += kGroup) {
    fetch(block, group, block.v_rows, head_dim * static_cast<int64_t>(sizeof(V)));
    fetch(next, group, next.k_rows, head_dim * static_cast<int64_t>(sizeof(K)));
    if (group + kGroup > block.from && group < block.to)
      transpose_keys(reinterpret_cast<const K* const*>(block.k_rows), group, block.from, block.to, head_dim,
                     keys);
  }
}

/// One split of the tile's keys into s.split().
template <class K, class V>
void walk_split(const PagedAttention& a, const Tile& tile, int64_t split, Scratch& s) {
  const int64_t head_dim = a.q.dim(2), padded = padded_dim(head_dim);
  make_empty(s.split(), tile.rows(), padded);
  const KeyRange keys = tile_keys(a, tile);
  const int64_t begin = std::max(keys.first, split * kSplit), end = std::min(keys.last, (split + 1) * kSplit);
  const auto find = [&](int64_t start, BlockKeys& block) {
    block.from = block.to = 0;
    if (start < end)
      find_keys<K, V>(a, tile, start, std::max(begin - start, int64_t{0}),
                      std::min<int64_t>(end - start, kBlock), block);
  };
  // Few rows use each value too seldom to pay for a widened copy.
  const bool as_stored = padded == head_dim && (kDTypeOf<V> == kF32 || tile.rows() <= kRows);
  int64_t start = begin / kBlock * kBlock;
  find(start, s.blocks[0]);
  prefetch_rows(s.blocks[0].k_rows, s.blocks[0].from, s.blocks[0].to,
                head_dim * static_cast<int64_t>(sizeof(K)));
  for (int turn = 0; start < end; start += kBlock, turn ^= 1) {
    const BlockKeys& block = s.blocks[turn];
    find(start + kBlock, s.blocks[turn ^ 1]);
    load_keys<K, V>(block, s.blocks[turn ^ 1], head_dim, s.keys);
    const auto* v_rows = reinterpret_cast<const V* const*>(block.v_rows);
    if (as_stored) {
      attend_block(a, tile, s, block, StoredValues<V>{v_rows}, start);
    } else {
      widen_values(v_rows, block.from, block.to, head_dim, padded, s.values);
      attend_block(a, tile, s, block, WidenedValues{s.values, padded}, start);
    }
  }
}

/// All splits of the tile's keys into s.total().
template <class K, class V>
void walk(const PagedAttention& a, const Tile& tile, Scratch& s) {
  const int64_t padded = padded_dim(a.q.dim(2));
  make_empty(s.total(), tile.rows(), padded);
  const KeyRange keys = tile_keys(a, tile);
  if (keys.first >= keys.last) return;
  load_queries(a, tile, s);
  for (int64_t split = keys.first / kSplit; split * kSplit < keys.last; ++split) {
    walk_split<K, V>(a, tile, split, s);
    merge(s.total(), s.split(), tile.rows(), padded);
  }
}

/// Normalised rows into o and lse; zeros and -inf where no key was seen.
inline void finish(const PagedAttention& a, const Tile& tile, const Partial& total) {
  const int64_t head_dim = a.q.dim(2), padded = padded_dim(head_dim);
  for (int64_t row = 0; row < tile.rows(); ++row) {
    const int64_t token = tile.token + row / tile.heads, head = tile.head + row % tile.heads;
    float* o = a.o.row<float>(token) + head * a.o.stride(1);
    const bool empty = total.sum[row] == 0;
    const auto sum = simd::set1(empty ? 1.0f : total.sum[row]);
    simd::for_each(head_dim, [&](int64_t i, int live) {
      const auto x = empty ? simd::zero() : simd::load(total.o + row * padded + i) / sum;
      simd::store(o + i, x, live);
    });
    if (a.lse)
      a.lse.row<float>(token)[head * a.lse.stride(1)] =
          empty ? -INFINITY : total.largest[row] + std::log(total.sum[row]);
  }
}

/// Items of all sequences, numbered in order; each thread takes the next number and looks it up going
/// forward.
template <class ItemsOf>
class ItemCursor {
 public:
  ItemCursor(int64_t sequences, const ItemsOf& items_of) : sequences_(sequences), items_of_(items_of) {}
  /// Sequence of the item and its number there; false past the last one. Numbers of successive calls must
  /// rise.
  bool find(int64_t item, int64_t* sequence, int64_t* within) {
    while (sequence_ < sequences_ && item >= before_ + items_of_(sequence_))
      before_ += items_of_(sequence_++);
    *sequence = sequence_, *within = item - before_;
    return sequence_ < sequences_;
  }

 private:
  int64_t sequences_, sequence_ = 0, before_ = 0;
  const ItemsOf& items_of_;
};

/// body(sequence, item of it) for every item, each thread taking the next one when it is free. `bytes`: see
/// CpuStream::threads_for. Which thread runs an item never changes its result. Ends early once a stop is
/// requested.
template <class ItemsOf, class Body>
void for_each_item(CpuStream& stream, int64_t sequences, double bytes, const ItemsOf& items_of,
                   const Body& body) {
  std::atomic<int64_t> next{0};
  stream.team().run(stream.threads_for(bytes), [&](int) {
    ItemCursor cursor(sequences, items_of);
    int64_t sequence, within;
    // A long prompt's call takes seconds; who runs it looks at the stop after it.
    while (!stop_requested() && cursor.find(next.fetch_add(1, std::memory_order_relaxed), &sequence, &within))
      body(sequence, within);
  });
}

}  // namespace ridge::RIDGE_ISA::attention
