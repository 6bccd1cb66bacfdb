#include "ops/feed_tokens/feed_tokens.h"

namespace ridge {

void feed_tokens_reference(const FeedTokensArgs& a) {
  for (int64_t t = 0; t < a.ids.dim(0); ++t) {
    const int64_t from = a.source.i64(t);
    if (from >= 0 && from < a.sampled.dim(0)) a.ids.set(static_cast<double>(a.sampled.i64(from)), t);
  }
}

namespace {

/// Every third token stays, one source lies beyond the rows.
void prepare_feed_tokens(FeedTokensArgs& a, const Dims& d, Random& random) {
  a.fed = int64_t{0};
  for (int64_t r = 0; r < d["rows"]; ++r) a.sampled.set(static_cast<double>(random.below(1 << 20)), r);
  for (int64_t t = 0; t < d["tokens"]; ++t) {
    a.ids.set(static_cast<double>(t), t);
    const bool stays = t % 3 == 2 || d["rows"] == 0;
    a.source.set(stays ? -1.0 : static_cast<double>(t == 4 ? d["rows"] : random.below(d["rows"])), t);
    a.fed.value += !stays && t != 4;
  }
}

int64_t fed_tokens(const Dims& d) {
  return d["fed"] < 0 ? d["tokens"] : d["fed"];
}

}  // namespace

Operator<FeedTokensArgs> describe_feed_tokens() {
  using A = FeedTokensArgs;
  Operator<A> op;
  op.name = "feed_tokens";
  op.operands = {{"ids", &A::ids, kInto, kIndices, "tokens", {kI32}},
                 {"source", &A::source, kIn, kIndices, "tokens", {kI32}},
                 {"sampled", &A::sampled, kIn, kIndices, "rows", {kI32}}};
  op.flops = [](const Dims&) { return int64_t{0}; };
  op.counts = {{"fed", &A::fed}};
  op.touched = {{"ids", fed_tokens},
                {"sampled", [](const Dims& d) { return std::min(fed_tokens(d), d["rows"]); }}};
  op.reference = feed_tokens_reference;
  op.case_dims = "tokens rows";
  op.cases = {{{0, 1}}, {{1, 0}}, {{1, 1}}, {{7, 3}}, {{300, 64}}, {{64, 64}, kBench}};
  op.prepare = prepare_feed_tokens;
  op.tolerance = exact<A>();
  return op;
}

Status feed_tokens(Stream& stream, const FeedTokensArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
