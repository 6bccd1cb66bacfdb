// Limit: f32 FMA. A tile of up to 128 rows (queries x heads of one kv head) shares each block of 64 keys, so
// packing a block costs a few percent of multiplying it; kernels/attention/walk.h has the arithmetic.

#include "account/cost.h"
#include "kernels/attention/walk.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/attention_prefill/tiling.h"
#include "ops/paged_attention.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

/// Tile number `item` of a sequence. Last queries first: they have the most keys, and long tiles go first.
attention::Tile tile_of(const AttentionPrefillArgs& a, const PrefillTiling& tiling, int64_t sequence,
                        int64_t item) {
  const int64_t first = a.query_start.i64(sequence), queries = a.query_start.i64(sequence + 1) - first;
  const int64_t per_query_tile = a.k_pages.dim(1) * tiling.head_tiles, tiles = tiling.query_tiles(queries);
  const int64_t query_tile = tiles - 1 - item / per_query_tile;
  const int64_t kv_head = item % per_query_tile / tiling.head_tiles, head_tile = item % tiling.head_tiles;
  attention::Tile tile;
  tile.sequence = sequence, tile.kv_head = kv_head;
  tile.token = first + queries * query_tile / tiles;
  tile.queries = first + queries * (query_tile + 1) / tiles - tile.token;
  tile.position = a.kv_length.i64(sequence) - (first + queries - tile.token);
  tile.head = kv_head * tiling.group + head_tile * tiling.heads_per_tile;
  tile.heads = std::min(tiling.heads_per_tile, tiling.group - head_tile * tiling.heads_per_tile);
  return tile;
}

Decline declines(const AttentionPrefillArgs& a) {
  return {cpu_declines(a)};
}

Status check_rows(const AttentionPrefillArgs& a) {
  int64_t before = 0;
  for (int64_t s = 0; s < a.kv_length.dim(0); ++s) {
    const int64_t first = a.query_start.i64(s), last = a.query_start.i64(s + 1);
    if (first < before || last < first || last > a.q.dim(0))
      return invalid_argument("attention_prefill: query_start[", s, "] is ", first, " and the next ", last,
                              ": needs numbers that never fall, from 0 to the ", a.q.dim(0), " rows of q");
    before = last;
    RIDGE_TRY(check_sequence("attention_prefill", a, s, last - first));
  }
  return {};
}

/// Bytes that would take as long to move as the arithmetic takes: about 5 FLOPs to a byte.
double work(const AttentionPrefillArgs& a) {
  double pairs = 0;
  for (int64_t s = 0; s < a.kv_length.dim(0); ++s) {
    const int64_t chunk = std::min(a.query_start.i64(s + 1) - a.query_start.i64(s), a.kv_length.i64(s));
    pairs += static_cast<double>(causal_pairs(a.kv_length.i64(s) - chunk, chunk, a.window));
  }
  return pairs * static_cast<double>(a.q.dim(1) * a.q.dim(2)) * 4 / 5;
}

Status run(Stream& stream, const AttentionPrefillArgs& a) {
  RIDGE_TRY(check_rows(a));
  const PrefillTiling tiling(a, attention::tile_rows(a.q.dim(2)), as_cpu(stream).threads_for(work(a)));
  const auto tiles = [&](int64_t sequence) { return tiling.tiles(a, sequence); };
  return with_dtype<float, f16, bf16, int8_t>(a.k_pages, [&]<class K>(K) {
    return with_dtype<float, f16, bf16, int8_t>(a.v_pages, [&]<class V>(V) {
      attention::for_each_item(as_cpu(stream), a.kv_length.dim(0), work(a), tiles,
                               [&](int64_t sequence, int64_t item) {
                                 attention::Scratch scratch;
                                 const attention::Tile tile = tile_of(a, tiling, sequence, item);
                                 attention::walk<K, V>(a, tile, scratch);
                                 attention::finish(a, tile, scratch.total());
                               });
      return Status();
    });
  });
}

}  // namespace

void attention_prefill_cpu(Kernels<AttentionPrefillArgs>& kernels) {
  Kernel<AttentionPrefillArgs> kernel;
  kernel.name = "attention_prefill_tiles", kernel.declines = declines, kernel.run = run;
  kernel.executed_flops = [](const AttentionPrefillArgs& a) {
    return executed_attention(a, 1, simd::kLanes, 1, simd::kLanes);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::RIDGE_ISA
