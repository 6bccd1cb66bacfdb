#pragma once
// How the CPU kernel cuts the query rows of each sequence into tiles, the items that threads take.

#include <algorithm>

#include "ops/attention_prefill/attention_prefill.h"

namespace ridge {

/// A tile is consecutive queries of a sequence by consecutive query heads of one kv head. Never what a row's
/// bits depend on.
struct PrefillTiling {
  int64_t group, heads_per_tile, head_tiles, queries_per_tile;

  /// Tiles of `most_rows` rows (queries x heads) where that keeps `threads` threads busy, else smaller ones:
  /// packing a block of keys for one more tile costs a few percent, a thread without a tile all of its time.
  PrefillTiling(const AttentionPrefillArgs& a, int64_t most_rows, int threads)
      : group(a.q.dim(1) / a.k_pages.dim(1)),
        heads_per_tile(std::min(group, most_rows)),
        head_tiles(heads_per_tile > 0 ? (group + heads_per_tile - 1) / heads_per_tile : 0),
        queries_per_tile(heads_per_tile > 0 ? most_rows / heads_per_tile : 1) {
    constexpr int64_t kFewestRows = 24;
    const int64_t most = queries_per_tile;
    for (int64_t parts = 2; !busy(a, threads) && most / parts * heads_per_tile >= kFewestRows; ++parts)
      queries_per_tile = most / parts;
  }
  int64_t query_tiles(int64_t queries) const { return (queries + queries_per_tile - 1) / queries_per_tile; }
  int64_t tiles(const AttentionPrefillArgs& a, int64_t sequence) const {
    return query_tiles(a.query_start.i64(sequence + 1) - a.query_start.i64(sequence)) * a.k_pages.dim(1) *
           head_tiles;
  }

 private:
  /// Tiles in rounds of one a thread leave at most a tenth of the threads without one.
  bool busy(const AttentionPrefillArgs& a, int threads) const {
    int64_t all = 0;
    for (int64_t s = 0; s < a.kv_length.dim(0); ++s) all += tiles(a, s);
    const int64_t places = (all + threads - 1) / threads * threads;
    return 10 * (places - all) <= places;
  }
};

}  // namespace ridge
