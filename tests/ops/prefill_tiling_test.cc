// How attention_prefill cuts its rows for the threads that it has.

#include "ops/attention_prefill/tiling.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace ridge {
namespace {

constexpr int64_t kMostRows = 128;

/// Chunks of `tokens` queries each, of a model with so many heads: shapes alone, but for query_start.
struct Batch {
  std::vector<int64_t> starts{0};
  AttentionPrefillArgs args;
  Batch(const std::vector<int64_t>& tokens, int64_t heads, int64_t kv_heads) {
    for (const int64_t n : tokens) starts.push_back(starts.back() + n);
    args.q = Tensor(nullptr, kF32, {starts.back(), heads, 64});
    args.k_pages = Tensor(nullptr, kF16, {1, kv_heads, 16, 64});
    args.query_start = Tensor(starts.data(), {static_cast<int64_t>(starts.size())});
    args.kv_length = Tensor(nullptr, kI64, {static_cast<int64_t>(tokens.size())});
  }
  int64_t tiles(int threads) const {
    const PrefillTiling tiling(args, kMostRows, threads);
    int64_t all = 0;
    for (int64_t s = 0; s < args.kv_length.dim(0); ++s) all += tiling.tiles(args, s);
    return all;
  }
};

TEST(PrefillTiling, a_small_chunk_is_cut_until_its_tiles_share_out_among_the_threads) {
  const Batch small({32}, 9, 3);  // 32 queries of 3 heads are one tile of 96 rows a kv head
  EXPECT_EQ(small.tiles(1), 3);
  EXPECT_EQ(small.tiles(3), 3);
  EXPECT_EQ(small.tiles(2), 6)
      << "three tiles would leave one of two threads waiting for a third of the time";
  EXPECT_EQ(small.tiles(4), 12);
  // Two sequences that share out together are not cut.
  EXPECT_EQ(Batch({32, 32}, 9, 3).tiles(2), 6);
}

TEST(PrefillTiling, many_tiles_stay_as_large_as_they_may_be) {
  // 512 queries in tiles of 128 / 3: 13 a kv head; of 39 tiles the last leaves one of 40 places empty.
  EXPECT_EQ(Batch({512}, 9, 3).tiles(2), 39);
  EXPECT_EQ(Batch({512}, 9, 3).tiles(1), 39);
}

TEST(PrefillTiling, tiles_are_neither_larger_than_they_may_be_nor_too_small_to_pay) {
  for (const int threads : {1, 2, 3, 7, 64})
    for (const int64_t tokens : {1, 2, 5, 32, 100, 1000})
      for (const auto& [heads, kv_heads] :
           {std::pair<int64_t, int64_t>{9, 3}, {32, 8}, {4, 4}, {71, 1}, {200, 1}}) {
        const Batch batch({tokens}, heads, kv_heads);
        const PrefillTiling tiling(batch.args, kMostRows, threads);
        const int64_t rows = tiling.queries_per_tile * tiling.heads_per_tile;
        EXPECT_LE(rows, kMostRows);
        EXPECT_GE(rows, 24);
        EXPECT_GE(tiling.heads_per_tile * tiling.head_tiles, tiling.group);
        EXPECT_GE(tiling.query_tiles(tokens) * tiling.queries_per_tile, tokens);
      }
}

}  // namespace
}  // namespace ridge
