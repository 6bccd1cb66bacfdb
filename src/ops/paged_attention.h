#pragma once
// What the descriptions of attention_prefill and attention_decode share: operands, account, reference,
// tolerance.

#include "base/checked.h"
#include "kernels/attention/paged.h"
#include "ops/operator.h"

namespace ridge {

/// One row of the reference: query [row, head] of a sequence at `position`, in double precision.
void attention_reference_row(const PagedAttention& a, int64_t sequence, int64_t row, int64_t head,
                             int64_t position);

/// Scales come with i8 pages and only with them.
bool scales_fit(const PagedAttention& a);
/// Scalars, scales, and heads a multiple of kv_heads.
Status check_attention(const PagedAttention& a);

/// Random lengths and shuffled pages for a case: kv_length, page_table, NaN (or 127 and a NaN scale) in every
/// slot that no sequence owns, small scales in the others. `least(s)` is what sequence s needs at least.
void prepare_pages(PagedAttention& a, Random& random, const std::vector<int64_t>& lengths);

/// Largest error of a kernel's output, per element: README.md of attention_prefill derives it.
class AttentionBound {
 public:
  /// Of o[row, head, i]; `out` is reference.o, `sequence` and `position` say what the row is. The weights of
  /// a row are worked out at its i = 0: go through its elements in order.
  double output(const PagedAttention& in, double out, int64_t sequence, int64_t row, int64_t head,
                int64_t position, int64_t i);
  /// Of lse[row, head].
  double log_sum(const PagedAttention& in, double lse, int64_t sequence, int64_t row, int64_t head,
                 int64_t position);

 private:
  void weigh(const PagedAttention& in, int64_t sequence, int64_t row, int64_t head, int64_t position);
  struct Key {
    int64_t page, offset;
    double v_scale;        // of its value's codes
    double weight, error;  // of the softmax; relative error of the weight
  };
  int64_t row_ = -1, head_ = -1;  // that keys_ were made for
  std::vector<Key> keys_;
};

template <class A>
std::vector<Operand<A>> attention_operands(const char* rows_dims, const char* lse_dims) {
  const std::vector<DType> stored = {kF32, kF16, kBF16, kI8};
  return {{"o", &A::o, kOut, kActivations, rows_dims, {kF32}},
          {"q", &A::q, kIn, kActivations, rows_dims, {kF32}},
          {"lse", &A::lse, kOut, kActivations, lse_dims, {kF32}, true},
          {"k_pages", &A::k_pages, kIn, kKv, "pages kv_heads page_size head_dim", stored},
          {"v_pages", &A::v_pages, kIn, kKv, "pages kv_heads page_size head_dim", stored},
          {"k_scale", &A::k_scale, kIn, kScales, "pages kv_heads page_size", {kF32}, true},
          {"v_scale", &A::v_scale, kIn, kScales, "pages kv_heads page_size", {kF32}, true},
          {"page_table", &A::page_table, kIn, kIndices, "sequences max_pages", {kI32}},
          {"kv_length", &A::kv_length, kIn, kIndices, "sequences", {kI64}}};
}

/// A row's key in the account, "1 q, 9/3 x 64, 1 after 120": queries, query and kv heads, head_dim, and the
/// window if any …
std::string attention_shape(const PagedAttention& a);
/// … and each chunk with its past; beyond four chunks sequences, keys, pairs and a hash of the chunks.
std::string attention_lengths(const PagedAttention& a, int64_t keys, int64_t pairs);

/// Account: scores and weighted values are 2 head_dim FLOPs each per pair and query head; keys and values are
/// read once per kv head (sharing saves bytes, not FLOPs).
/// Operations of a kernel that takes rows and tiles as tiled_scores() does and leaves what no row sees out of
/// the weighted values: scores over head_dim in whole vectors of `score_columns`, values in whole vectors of
/// `value_columns`. What is useful, where the call does not tell its chunks.
template <class A>
int64_t executed_attention(const A& a, int64_t rows, int64_t keys, int64_t score_columns,
                           int64_t value_columns) {
  const int64_t head_dim = a.q.dim(2);
  if (a.chunks == nullptr) return 4 * a.pairs.get() * a.q.dim(1) * head_dim;
  return 2 * tiled_scores(a, rows, keys) * round_up(head_dim, score_columns) +
         2 * visible_scores(a) * round_up(head_dim, value_columns);
}

template <class A>
void count_attention(Operator<A>* op) {
  op->chunks = &A::chunks;
  op->flops = [](const Dims& d) { return 4 * d["pairs"] * d["heads"] * d["head_dim"]; };
  const auto elements = [](const Dims& d) { return d["keys"] * d["kv_heads"] * d["head_dim"]; };
  const auto scales = [](const Dims& d) { return d["keys"] * d["kv_heads"]; };
  const auto entries = [](const Dims& d) {
    return std::min((d["keys"] + d["page_size"] - 1) / std::max<int64_t>(d["page_size"], 1),
                    d["sequences"] * d["max_pages"]);
  };
  op->touched = {{"k_pages", elements},
                 {"v_pages", elements},
                 {"k_scale", scales},
                 {"v_scale", scales},
                 {"page_table", entries}};
}

}  // namespace ridge
