#include "ops/attention_decode/attention_decode.h"

#include <memory>

#include "ops/paged_attention.h"

namespace ridge {

void attention_decode_reference(const AttentionDecodeArgs& a);

namespace {

/// Sequence 0 as long as the table allows, every third one empty, the others in between.
void prepare_attention_decode(AttentionDecodeArgs& a, const Dims& d, Random& random) {
  const int64_t room = d["max_pages"] * d["page_size"];
  std::vector<int64_t> lengths;
  int64_t pages = d["pages"];
  a.pairs = a.keys = int64_t{0};
  std::vector<QueryChunk> chunks;
  for (int64_t s = 0; s < d["sequences"]; ++s) {
    int64_t length = s == 0 ? room : s % 3 == 1 ? 0 : 1 + random.below(room);
    length = std::min(length, pages * d["page_size"]);
    pages -= (length + d["page_size"] - 1) / d["page_size"];
    lengths.push_back(length);
    if (length == 0) continue;
    a.pairs.value += causal_pairs(length - 1, 1, a.window);
    a.keys.value += causal_keys(length - 1, 1, a.window);
    chunks.push_back({length - 1, 1});
  }
  a.chunks = std::make_shared<const std::vector<QueryChunk>>(std::move(chunks));
  a.scale = 1 / std::sqrt(static_cast<float>(d["head_dim"]));
  prepare_pages(a, random, lengths);
}

Tolerance<AttentionDecodeArgs> attention_decode_tolerance() {
  const auto bound = std::make_shared<AttentionBound>();
  return {[bound](const Judged<AttentionDecodeArgs>& j, Tensor AttentionDecodeArgs::*out, int64_t row,
                  int64_t head, int64_t i, int64_t) {
            const int64_t position = j.inputs.kv_length.i64(row) - 1;
            if (position < 0) return 0.0;
            const double want = (j.reference.*out).f64(row, head, i);
            return out == static_cast<Tensor AttentionDecodeArgs::*>(&AttentionDecodeArgs::lse)
                       ? bound->log_sum(j.inputs, want, row, row, head, position)
                       : bound->output(j.inputs, want, row, row, head, position, i);
          },
          false};
}

}  // namespace

Operator<AttentionDecodeArgs> describe_attention_decode() {
  using A = AttentionDecodeArgs;
  Operator<A> op;
  op.name = "attention_decode";
  op.shape_key = [](const A& a) { return attention_shape(a); };
  op.lengths_key = [](const A& a) { return attention_lengths(a, a.keys.get(), a.pairs.get()); };
  op.operands = attention_operands<A>("sequences heads head_dim", "sequences heads");
  op.operands[0].dtypes = {kF32, kBF16};
  op.counts = {{"pairs", &A::pairs}, {"keys", &A::keys}};
  op.params = {{"scale", &A::scale}, {"window", &A::window}, {"softcap", &A::softcap}};
  count_attention(&op);
  op.reference = attention_decode_reference;
  op.case_dims = "sequences heads kv_heads head_dim pages page_size max_pages";
  op.cases = {{{0, 1, 1, 4, 1, 4, 2}},
              {{1, 1, 1, 1, 1, 1, 1}},
              {{4, 3, 1, 7, 8, 5, 3}, 0, [](A& a) { a.window = 3; }, "window"},
              {{3, 4, 2, 46, 12, 16, 5}, 0, nullptr, "K42's head"},
              {{2, 14, 2, 40, 9, 16, 6}, 0, [](A& a) { a.softcap = 2.0f; }, "softcap"},
              {{1, 3, 1, 64, 30, 7, 21}, 0, nullptr, "three blocks"},
              {{2, 4, 2, 16, 80, 16, 40}, 0, nullptr, "two splits"},
              {{1, 71, 1, 24, 3, 256, 2}, 0, [](A& a) { a.window = 70; }},
              {{1, 4, 2, 256, 40, 3, 40}},
              {{2, 2, 1, 576, 40, 3, 20}},
              {{1, 9, 3, 64, 2048, 16, 2048}, kBench, nullptr, "SmolLM2-135M, 32k"},
              {{1, 32, 8, 128, 2048, 16, 2048}, kBench, nullptr, "32k"}};
  op.pace_dims = [](const A& a) {
    const int64_t kv_heads = std::max<int64_t>(a.k_pages.dim(1), 1);
    return std::vector<int64_t>{a.q.dim(2), a.q.dim(1) / kv_heads, kv_heads * a.q.dim(0)};
  };
  // A cache of one block, and one of two splits.
  for (const int64_t head_dim : {64, 128, 256})
    for (const int64_t group : {1, 2, 3, 4, 6, 8})
      for (const int64_t pages : {4, 36}) op.pace.push_back({{1, group, 1, head_dim, pages, 16, pages}});
  op.prepare = prepare_attention_decode;
  op.choice_exists = [](const A& a) { return scales_fit(a); };
  op.tolerance = attention_decode_tolerance();
  op.check = [](const A& a, const Dims&) { return check_attention(a); };
  return op;
}

Status attention_decode(Stream& stream, const AttentionDecodeArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
