#include "ops/cast/cast.h"

namespace ridge {

void cast_reference(const CastArgs& a) {
  for (int64_t r = 0; r < a.y.dim(0); ++r)
    for (int64_t c = 0; c < a.y.dim(1); ++c) a.y.set(a.x.f64(r, c), r, c);
}

Operator<CastArgs> describe_cast() {
  using A = CastArgs;
  Operator<A> op;
  op.name = "cast";
  op.operands = {{"y", &A::y, kOut, kActivations, "rows columns", {kBF16, kF32}},
                 {"x", &A::x, kIn, kActivations, "rows columns", {kF32, kBF16}}};
  op.flops = [](const Dims&) { return int64_t{0}; };
  op.reference = cast_reference;
  op.case_dims = "rows columns";
  op.cases = {{{0, 8}}, {{1, 1}}, {{3, 7}}, {{2, 46}}, {{5, 1536}}, {{64, 4096}, kBench}};
  op.tolerance = exact<A>();
  return op;
}

Status cast(Stream& stream, const CastArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
