// Limit: read bandwidth at long context, while a kv head serves few query heads; f32 FMA beyond. Each key and
// value is read once, in its stored type, for all query heads of its kv head; kernels/attention/walk.h has
// the arithmetic.

#include "kernels/attention/walk.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/paged_attention.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

// With so many (sequence, kv head) pairs each is one item; with fewer, their splits are items of their own
// and need workspace. A choice by shape alone, and without effect on a bit of the result.
constexpr int64_t kEnoughItems = 128;

struct Items {
  int64_t group, heads_per_tile, head_tiles, padded, max_splits;
  bool by_split;
  explicit Items(const PagedAttention& a)
      : group(a.q.dim(1) / a.k_pages.dim(1)),
        heads_per_tile(std::min(group, attention::tile_rows(a.q.dim(2)))),
        head_tiles(heads_per_tile > 0 ? (group + heads_per_tile - 1) / heads_per_tile : 0),
        padded(attention::padded_dim(a.q.dim(2))),
        max_splits((a.page_table.dim(1) * a.k_pages.dim(2) + attention::kSplit - 1) / attention::kSplit),
        by_split(a.kv_length.dim(0) * a.k_pages.dim(1) < kEnoughItems && max_splits > 1) {}
};

/// Rows of item `item` of a sequence, all splits.
attention::Tile tile_of(const AttentionDecodeArgs& a, const Items& items, int64_t sequence, int64_t item) {
  attention::Tile tile;
  const int64_t head_tile = item % items.head_tiles;
  tile.sequence = sequence, tile.kv_head = item / items.head_tiles;
  tile.token = sequence, tile.queries = 1, tile.position = a.kv_length.i64(sequence) - 1;
  tile.head = tile.kv_head * items.group + head_tile * items.heads_per_tile;
  tile.heads = std::min(items.heads_per_tile, items.group - head_tile * items.heads_per_tile);
  return tile;
}

/// Where a tile's partial of one split lies in the workspace: o [sequences][max_splits][heads][padded], then
/// largest and sum [sequences][max_splits][heads] each.
attention::Partial partial_at(const AttentionDecodeArgs& a, const Items& items, void* workspace,
                              const attention::Tile& tile, int64_t split) {
  const int64_t heads = a.q.dim(1), rows = a.kv_length.dim(0) * items.max_splits * heads;
  const int64_t row = (tile.sequence * items.max_splits + split) * heads + tile.head;
  auto* o = static_cast<float*>(workspace);
  float* largest = o + rows * items.padded;
  return {o + row * items.padded, largest + row, largest + rows + row};
}

int64_t workspace(const AttentionDecodeArgs& a) {
  const Items items(a);
  if (!items.by_split) return 0;
  return a.kv_length.dim(0) * items.max_splits * a.q.dim(1) * (items.padded + 2) *
         static_cast<int64_t>(sizeof(float));
}

template <class K, class V>
void decode_by_head(CpuStream& stream, const AttentionDecodeArgs& a, const Items& items, double bytes) {
  const auto per_sequence = [&](int64_t) { return a.k_pages.dim(1) * items.head_tiles; };
  attention::for_each_item(stream, a.kv_length.dim(0), bytes, per_sequence,
                           [&](int64_t sequence, int64_t item) {
                             attention::Scratch scratch;
                             const attention::Tile tile = tile_of(a, items, sequence, item);
                             attention::walk<K, V>(a, tile, scratch);
                             attention::finish(a, tile, scratch.total());
                           });
}

template <class K, class V>
void decode_by_split(CpuStream& stream, const AttentionDecodeArgs& a, const Items& items, double bytes) {
  const int64_t tiles = a.k_pages.dim(1) * items.head_tiles;
  const auto first_split = [&](int64_t s) {
    return visible_keys(a.kv_length.i64(s) - 1, a.window).first / attention::kSplit;
  };
  const auto end_split = [&](int64_t s) {
    return (a.kv_length.i64(s) + attention::kSplit - 1) / attention::kSplit;
  };
  const auto per_sequence = [&](int64_t s) { return (end_split(s) - first_split(s)) * tiles; };
  attention::for_each_item(
      stream, a.kv_length.dim(0), bytes, per_sequence, [&](int64_t sequence, int64_t item) {
        attention::Scratch scratch;
        const attention::Tile tile = tile_of(a, items, sequence, item % tiles);
        const int64_t split = first_split(sequence) + item / tiles;
        attention::load_queries(a, tile, scratch);
        attention::walk_split<K, V>(a, tile, split, scratch);
        const attention::Partial to = partial_at(a, items, stream.workspace(), tile, split);
        std::memcpy(to.o, scratch.split_o, static_cast<size_t>(tile.rows() * items.padded) * sizeof(float));
        std::copy_n(scratch.split_largest, tile.rows(), to.largest);
        std::copy_n(scratch.split_sum, tile.rows(), to.sum);
      });
  const auto all_tiles = [&](int64_t) { return tiles; };
  const double merged = static_cast<double>(workspace(a));
  attention::for_each_item(
      stream, a.kv_length.dim(0), merged, all_tiles, [&](int64_t sequence, int64_t item) {
        attention::Scratch scratch;
        const attention::Tile tile = tile_of(a, items, sequence, item);
        attention::make_empty(scratch.total(), tile.rows(), items.padded);
        for (int64_t split = first_split(sequence); split < end_split(sequence); ++split)
          attention::merge(scratch.total(), partial_at(a, items, stream.workspace(), tile, split),
                           tile.rows(), items.padded);
        attention::finish(a, tile, scratch.total());
      });
}

Decline declines(const AttentionDecodeArgs& a) {
  return {cpu_declines(a)};
}

Status run(Stream& stream, const AttentionDecodeArgs& a) {
  double keys = 0;
  for (int64_t s = 0; s < a.kv_length.dim(0); ++s) {
    RIDGE_TRY(check_sequence("attention_decode", a, s, 1));
    const KeyRange visible = visible_keys(a.kv_length.i64(s) - 1, a.window);
    keys += static_cast<double>(visible.last - visible.first);
  }
  const Items items(a);
  return with_dtype<float, f16, bf16, int8_t>(a.k_pages, [&]<class K>(K) {
    return with_dtype<float, f16, bf16, int8_t>(a.v_pages, [&]<class V>(V) {
      const double bytes =
          keys * static_cast<double>(a.k_pages.dim(1) * a.k_pages.dim(3)) * (sizeof(K) + sizeof(V));
      if (items.by_split)
        decode_by_split<K, V>(as_cpu(stream), a, items, bytes);
      else
        decode_by_head<K, V>(as_cpu(stream), a, items, bytes);
      return Status();
    });
  });
}

}  // namespace

void attention_decode_cpu(Kernels<AttentionDecodeArgs>& kernels) {
  Kernel<AttentionDecodeArgs> kernel;
  kernel.name = "attention_decode_splits", kernel.declines = declines, kernel.run = run;
  kernel.workspace = workspace;
  kernel.executed_flops = [](const AttentionDecodeArgs& a) {
    return executed_attention(a, 1, simd::kLanes, 1, simd::kLanes);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::RIDGE_ISA
