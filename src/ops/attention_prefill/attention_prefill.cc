#include "ops/attention_prefill/attention_prefill.h"

#include <memory>

#include "ops/paged_attention.h"

namespace ridge {

void attention_prefill_reference(const AttentionPrefillArgs& a);

namespace {

/// Sequence 0 as long as the table allows; of the others every third has no new tokens, every fourth no cache
/// at all; one row at either end of q belongs to nobody when there are rows to spare.
void prepare_attention_prefill(AttentionPrefillArgs& a, const Dims& d, Random& random) {
  const int64_t sequences = d["sequences"], room = d["max_pages"] * d["page_size"];
  const int64_t spare = d["tokens"] >= 2 * sequences && sequences > 1 ? 1 : 0;
  std::vector<int64_t> lengths;
  int64_t next = spare, left = d["tokens"] - 2 * spare, pages = d["pages"];
  a.pairs = a.keys = int64_t{0};
  std::vector<QueryChunk> chunks;
  for (int64_t s = 0; s < sequences; ++s) {
    a.query_start.set(static_cast<double>(next), s);
    int64_t chunk = s + 1 == sequences ? left : left / 2;
    int64_t length = s == 0 ? room : std::min(room, chunk + random.below(room));
    if (s % 3 == 1 && s + 1 < sequences) chunk = 0;
    if (s % 4 == 3) length = 0;
    length = std::min(length, pages * d["page_size"]);
    pages -= (length + d["page_size"] - 1) / d["page_size"];
    lengths.push_back(length);
    next += chunk, left -= chunk;
    const int64_t seeing = std::min(chunk, length);
    a.pairs.value += causal_pairs(length - seeing, seeing, a.window);
    a.keys.value += causal_keys(length - seeing, seeing, a.window);
    chunks.push_back({length - seeing, seeing});
  }
  a.query_start.set(static_cast<double>(next), sequences);
  a.chunks = std::make_shared<const std::vector<QueryChunk>>(std::move(chunks));
  a.scale = 1 / std::sqrt(static_cast<float>(d["head_dim"]));
  prepare_pages(a, random, lengths);
}

struct Row {
  int64_t sequence, position;
};
/// -1 when the row of q is no sequence's.
Row row_of(const AttentionPrefillArgs& a, int64_t row) {
  for (int64_t s = 0; s < a.kv_length.dim(0); ++s)
    if (row >= a.query_start.i64(s) && row < a.query_start.i64(s + 1))
      return {s, a.kv_length.i64(s) - a.query_start.i64(s + 1) + row};
  return {-1, -1};
}

Tolerance<AttentionPrefillArgs> attention_prefill_tolerance() {
  const auto bound = std::make_shared<AttentionBound>();
  return {[bound](const Judged<AttentionPrefillArgs>& j, Tensor AttentionPrefillArgs::*out, int64_t row,
                  int64_t head, int64_t i, int64_t) {
            const Row at = row_of(j.inputs, row);
            if (at.sequence < 0 || at.position < 0) return 0.0;
            const double want = (j.reference.*out).f64(row, head, i);
            return out == static_cast<Tensor AttentionPrefillArgs::*>(&AttentionPrefillArgs::lse)
                       ? bound->log_sum(j.inputs, want, at.sequence, row, head, at.position)
                       : bound->output(j.inputs, want, at.sequence, row, head, at.position, i);
          },
          false};
}

}  // namespace

Operator<AttentionPrefillArgs> describe_attention_prefill() {
  using A = AttentionPrefillArgs;
  Operator<A> op;
  op.name = "attention_prefill";
  op.shape_key = [](const A& a) { return attention_shape(a); };
  op.lengths_key = [](const A& a) { return attention_lengths(a, a.keys.get(), a.pairs.get()); };
  op.operands = attention_operands<A>("tokens heads head_dim", "tokens heads");
  op.operands.push_back({"query_start", &A::query_start, kIn, kIndices, "sequences_plus_1", {kI64}});
  op.counts = {{"pairs", &A::pairs}, {"keys", &A::keys}};
  op.params = {{"scale", &A::scale}, {"window", &A::window}, {"softcap", &A::softcap}};
  count_attention(&op);
  op.reference = attention_prefill_reference;
  op.case_dims = "sequences sequences_plus_1 tokens heads kv_heads head_dim pages page_size max_pages";
  const auto windowed = [](A& a) { a.window = 3; };
  const auto capped = [](A& a) { a.softcap = 2.0f; };
  op.cases = {{{0, 1, 0, 1, 1, 4, 1, 4, 2}},
              {{1, 2, 1, 1, 1, 1, 1, 1, 1}},
              {{4, 5, 9, 3, 1, 7, 8, 5, 3}, 0, windowed, "window"},
              {{2, 3, 6, 4, 2, 46, 9, 16, 5}, 0, nullptr, "K42's head"},
              {{2, 3, 12, 14, 2, 40, 12, 16, 6}, 0, capped, "softcap"},
              {{1, 2, 5, 3, 1, 64, 30, 7, 21}, 0, nullptr, "three blocks"},
              {{1, 2, 5, 2, 1, 80, 2, 100, 1}},
              {{3, 4, 9, 6, 2, 32, 80, 16, 40}, 0, [](A& a) { a.window = 70; }, "two splits"},
              {{1, 2, 4, 4, 2, 256, 40, 3, 40}},
              {{1, 2, 2, 2, 1, 576, 40, 3, 30}},
              {{1, 2, 512, 9, 3, 64, 32, 16, 32}, kBench, nullptr, "SmolLM2-135M"},
              {{1, 2, 512, 32, 8, 128, 64, 16, 64}, kBench}};
  op.pace_dims = [](const A& a) {
    const int64_t kv_heads = std::max<int64_t>(a.k_pages.dim(1), 1),
                  sequences = std::max<int64_t>(a.kv_length.dim(0), 1);
    return std::vector<int64_t>{a.q.dim(2), a.q.dim(1) / kv_heads, kv_heads * sequences,
                                a.q.dim(0) / sequences};
  };
  // Chunks at the start of a prompt and behind a past.
  for (const int64_t head_dim : {64, 128, 256})
    for (const int64_t group : {1, 3, 8})
      for (const auto& [tokens, pages] :
           {std::pair<int64_t, int64_t>{16, 1}, {16, 32}, {128, 8}, {128, 32}, {512, 32}})
        op.pace.push_back({{1, 2, tokens, group, 1, head_dim, pages, 16, pages}});
  op.prepare = prepare_attention_prefill;
  op.choice_exists = [](const A& a) { return scales_fit(a); };
  op.tolerance = attention_prefill_tolerance();
  op.check = [](const A& a, const Dims& d) -> Status {
    if (d["sequences_plus_1"] != d["sequences"] + 1)
      return invalid_argument("query_start has ", d["sequences_plus_1"], " entries, needs one more than the ",
                              d["sequences"], " sequences of kv_length");
    return check_attention(a);
  };
  return op;
}

Status attention_prefill(Stream& stream, const AttentionPrefillArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
