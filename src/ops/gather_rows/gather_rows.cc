#include "ops/gather_rows/gather_rows.h"

namespace ridge {

void gather_rows_reference(const GatherRowsArgs& a) {
  for (int64_t i = 0; i < a.y.dim(0); ++i)
    for (int64_t c = 0; c < a.y.dim(1); ++c) a.y.set(a.x.f64(a.index.i64(i), c), i, c);
}

Operator<GatherRowsArgs> describe_gather_rows() {
  using A = GatherRowsArgs;
  Operator<A> op;
  op.name = "gather_rows";
  op.operands = {{"y", &A::y, kOut, kActivations, "n columns", {kF32, kBF16}},
                 {"x", &A::x, kIn, kActivations, "rows columns", {}, false, "y"},
                 {"index", &A::index, kIn, kIndices, "n", {kI32, kI64}}};
  op.flops = [](const Dims&) { return 0; };
  op.touched = {{"x", [](const Dims& d) { return d["n"] * d["columns"]; }}};
  op.reference = gather_rows_reference;
  op.case_dims = "n rows columns";
  op.cases = {{{0, 4, 8}}, {{1, 1, 1}}, {{3, 9, 7}}, {{5, 2, 576}}, {{64, 512, 4096}, kBench}};
  op.pace = {{{1, 32, 1024}}, {{32, 32, 1024}}};
  op.prepare = [](A& a, const Dims& d, Random& random) {
    for (int64_t i = 0; i < d["n"]; ++i) a.index.set(static_cast<double>(random.below(d["rows"])), i);
  };
  op.tolerance = exact<A>();
  return op;
}

Status gather_rows(Stream& stream, const GatherRowsArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
