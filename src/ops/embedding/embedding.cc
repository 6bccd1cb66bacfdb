#include "ops/embedding/embedding.h"

#include <cmath>

#include "kernels/rows16/rows16.h"

namespace ridge {

void embedding_reference(const EmbeddingArgs& a);

namespace {

void fill_ids(EmbeddingArgs& a, const Dims& d, Random& random) {
  for (int64_t t = 0; t < d["tokens"]; ++t) {
    const int64_t id = t == 0 ? d["vocab"] - 1 : random.below(static_cast<uint32_t>(d["vocab"]));
    a.ids.set(static_cast<double>(id), t);
  }
}

}  // namespace

Operator<EmbeddingArgs> describe_embedding() {
  using A = EmbeddingArgs;
  Operator<A> op;
  op.name = "embedding";
  op.operands = {{"y", &A::y, kOut, kActivations, "tokens hidden", {kF32}},
                 {"ids", &A::ids, kIn, kIndices, "tokens", {kI32, kI64}},
                 {"w",
                  &A::w,
                  kIn,
                  kWeights,
                  "vocab hidden",
                  {kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K}}};
  op.params = {{"scale", &A::scale}};
  op.flops = [](const Dims& d) { return d["tokens"] * d["hidden"]; };
  op.touched = {{"w", [](const Dims& d) { return d["tokens"] * d["hidden"]; }}};
  op.reference = embedding_reference;
  op.case_dims = "tokens vocab hidden";
  op.cases = {{{0, 3, 32}},
              {{1, 1, 1}},
              {{3, 5, 7}},
              {{4, 17, 96}},
              {{2, 33, 256}, 0, [](A& a) { a.scale = 16; }, "scaled"},
              {{1, 49152, 576}, kBench},
              {{512, 49152, 576}, kBench}};
  op.pace = {{{1, 64, 1024}}, {{64, 64, 1024}}};
  op.prepare = fill_ids;
  // Types with a minimum round once when decoded; the scale rounds once.
  op.tolerance = f32_roundings<A>(2);
  return op;
}

Status embedding(Stream& stream, const EmbeddingArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
