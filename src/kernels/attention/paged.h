#pragma once
// Attention over a paged KV cache: the problem that attention_prefill and attention_decode share. How it is
// computed: block.h, walk.h; why so: src/ops/attention_prefill/README.md.

#include <memory>
#include <vector>

#include "account/cost.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace ridge {

struct PagedAttention {
  Tensor o;           // out [rows, heads, head_dim] f32
  Tensor q;           // in  [rows, heads, head_dim] f32
  Tensor lse;         // out [rows, heads] f32, optional: ln sum e^score; -inf for an empty row
  Tensor k_pages;     // in  [pages, kv_heads, page_size, head_dim] f32, f16, bf16, i8
  Tensor v_pages;     // in  [pages, kv_heads, page_size, head_dim] f32, f16, bf16, i8
  Tensor k_scale;     // in  [pages, kv_heads, page_size] f32: with i8 pages, and only with them
  Tensor v_scale;     // in  [pages, kv_heads, page_size] f32: with i8 pages, and only with them
  Tensor page_table;  // in  [sequences, max_pages] i32; entries past a sequence's last page are never read
  Tensor kv_length;   // in  [sequences] i64: cached tokens, those of this call included
  float scale = 1.0f;
  int64_t window = 0;    // a query sees at most so many keys, its own included; 0: all before it
  float softcap = 0.0f;  // scores become softcap * tanh(score / softcap); 0: as they are
  // The sequences' queries as the host knows them, which whoever writes the call keeps up to date: from them
  // follow the operations that a kernel executes for nothing. Null: unknown, and none are counted.
  std::shared_ptr<const std::vector<QueryChunk>> chunks;
};

/// Scores that a kernel computes which takes the query rows of a kv head (query x head, heads innermost) in
/// blocks of `rows` and keys in tiles of `keys` from multiples of it on: every row of a block with every key
/// of each tile that any of them sees. Over all heads.
int64_t tiled_scores(const PagedAttention& a, int64_t rows, int64_t keys);
/// Scores that causality and window allow, over all heads.
int64_t visible_scores(const PagedAttention& a);

/// The keys that a query at `position` sees: [first, last). Nothing before position 0.
struct KeyRange {
  int64_t first, last;
};
inline KeyRange visible_keys(int64_t position, int64_t window) {
  if (position < 0) return {0, 0};
  return {window > 0 && position >= window ? position + 1 - window : 0, position + 1};
}

/// The contents of kv_length and of the live part of page_table, for queries of `chunk(sequence)` last
/// tokens. Names operand, value and what it has to fit.
Status check_sequence(const char* op, const PagedAttention& a, int64_t sequence, int64_t chunk);

/// "" or why no CPU kernel takes the layout.
std::string cpu_declines(const PagedAttention& a);

inline constexpr int64_t kMaxHeadDim = 576;

}  // namespace ridge
