#include "kernels/attention/paged.h"

#include <algorithm>

namespace ridge {

Status check_sequence(const char* op, const PagedAttention& a, int64_t sequence, int64_t chunk) {
  const int64_t pages = a.k_pages.dim(0), page_size = a.k_pages.dim(2), max_pages = a.page_table.dim(1);
  const int64_t length = a.kv_length.i64(sequence);
  if (length < 0)
    return invalid_argument(op, ": kv_length[", sequence, "] is ", length, ", needs to be at least 0");
  if (length > max_pages * page_size)
    return invalid_argument(op, ": kv_length[", sequence, "] is ", length, ", page_table has room for ",
                            max_pages, " pages of ", page_size, ": widen page_table");
  if (length == 0 || chunk == 0) return {};
  const int64_t first = visible_keys(std::max<int64_t>(length - chunk, 0), a.window).first;
  for (int64_t i = first / page_size; i <= (length - 1) / page_size; ++i)
    if (const int64_t page = a.page_table.i64(sequence, i); page < 0 || page >= pages)
      return invalid_argument(op, ": page_table[", sequence, ", ", i, "] is ", page, ", the cache has ",
                              pages, " pages");
  return {};
}

int64_t tiled_scores(const PagedAttention& a, int64_t rows, int64_t keys) {
  const int64_t kv_heads = a.k_pages.dim(1), group = kv_heads > 0 ? a.q.dim(1) / kv_heads : 0;
  int64_t tiles = 0;
  for (const QueryChunk& c : *a.chunks)
    for (int64_t row = 0; row < c.tokens * group; row += rows) {
      const int64_t first = c.past + row / group;
      const int64_t last = c.past + (std::min(row + rows, c.tokens * group) - 1) / group;
      if (last < 0) continue;
      tiles += visible_keys(last, a.window).last / keys - visible_keys(first, a.window).first / keys;
      tiles += visible_keys(last, a.window).last % keys != 0;
    }
  return kv_heads * tiles * rows * keys;
}

int64_t visible_scores(const PagedAttention& a) {
  int64_t pairs = 0;
  for (const QueryChunk& c : *a.chunks) pairs += causal_pairs(c.past, c.tokens, a.window);
  return a.q.dim(1) * pairs;
}

std::string cpu_declines(const PagedAttention& a) {
  if (!a.q.rows_are_dense() || !a.o.rows_are_dense()) return "q or o has strides along head_dim: copy it";
  if (!a.k_pages.rows_are_dense() || !a.v_pages.rows_are_dense())
    return "k_pages or v_pages has strides along head_dim: make head_dim innermost";
  if (a.o.dtype != kF32) return text("o is ", dtype_name(a.o.dtype), ", the kernels write f32");
  if (a.q.dim(2) > kMaxHeadDim)
    return text("head_dim is ", a.q.dim(2), ", the kernels' blocks hold up to ", kMaxHeadDim);
  return "";
}

}  // namespace ridge
