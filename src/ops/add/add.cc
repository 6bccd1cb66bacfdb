#include "ops/add/add.h"

namespace ridge {

void add_reference(const AddArgs& a) {
  for (int64_t r = 0; r < a.y.dim(0); ++r)
    for (int64_t c = 0; c < a.y.dim(1); ++c) a.y.set(a.a.f64(r, c) + a.b.f64(r, c), r, c);
}

Operator<AddArgs> describe_add() {
  using A = AddArgs;
  Operator<A> op;
  op.name = "add";
  op.operands = {{"y", &A::y, kOut, kActivations, "rows columns", {kF32, kBF16}},
                 {"a", &A::a, kIn, kActivations, "rows columns", {}, false, "y"},
                 {"b", &A::b, kIn, kActivations, "rows columns", {}, false, "y"}};
  op.flops = [](const Dims& d) { return d["rows"] * d["columns"]; };
  op.reference = add_reference;
  op.case_dims = "rows columns";
  op.cases = {
      {{0, 8}}, {{1, 1}}, {{3, 7}}, {{2, 46}}, {{5, 576}}, {{1, 4096}, kBench}, {{512, 4096}, kBench}};
  op.pace = {{{1, 1024}}, {{32, 1024}}};
  op.tolerance = exact<A>();
  return op;
}

Status add(Stream& stream, const AddArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
