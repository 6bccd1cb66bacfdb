#include "ops/quantize_rows/quantize_rows.h"

#include <limits>

namespace ridge {

void quantize_rows_reference(const QuantizeRowsArgs& a);

namespace {

void set_row(const QuantizeRowsArgs& a, int64_t row, double value) {
  if (row >= a.x.dim(0)) return;
  for (int64_t k = 0; k < a.x.dim(1); ++k) a.x.set(value, row, k);
}

}  // namespace

Operator<QuantizeRowsArgs> describe_quantize_rows() {
  using A = QuantizeRowsArgs;
  Operator<A> op;
  op.name = "quantize_rows";
  op.shape_key = [](const A& a) { return text(a.x.dim(0), "x", a.x.dim(1)); };
  op.operands = {{"q", &A::q, kOut, kActivations, "tokens padded", {kI8}},
                 {"scale", &A::scale, kOut, kScales, "tokens blocks", {kF32}},
                 {"x", &A::x, kIn, kActivations, "tokens columns", {kF32, kBF16}}};
  // A magnitude, a comparison, a product and a rounding per element.
  op.flops = [](const Dims& d) { return 4 * d["tokens"] * d["columns"]; };
  op.reference = quantize_rows_reference;
  op.case_dims = "tokens columns padded blocks";
  op.cases = {
      {{0, 32, 32, 1}},
      {{1, 1, 32, 1}},
      {{2, 32, 32, 1}},
      {{3, 33, 64, 2}},
      {{2, 47, 64, 2}},
      {{2, 63, 64, 2}},
      {{5, 576, 576, 18}},
      {{3, 128, 128, 4}, 0, [](A& a) { set_row(a, 1, 0.0); }, "K39 zero row"},
      {{2, 64, 64, 2}, 0, [](A& a) { a.x.set(std::numeric_limits<double>::quiet_NaN(), 1, 40); }, "NaN"},
      {{2, 64, 64, 2}, 0, [](A& a) { a.x.set(-HUGE_VAL, 0, 3); }, "infinity"},
      {{2, 64, 64, 2}, 0, [](A& a) { set_row(a, 0, 1e-38); }, "too small for a normal scale"},
      {{2, 64, 64, 2}, 0, [](A& a) { set_row(a, 0, 3e38); }, "near the largest f32"},
      {{1, 2048, 2048, 64}, kBench},
      {{512, 2048, 2048, 64}, kBench}};
  op.pace = {{{1, 1024, 1024, 32}}, {{32, 1024, 1024, 32}}};
  op.tolerance = exact<A>();
  op.check = [](const A& a, const Dims& d) -> Status {
    const int64_t wanted = (a.x.dim(1) + 31) / 32 * 32;
    if (d["padded"] != wanted)
      return invalid_argument("quantize_rows: q has ", d["padded"], " columns, needs ", wanted, " for the ",
                              a.x.dim(1), " of x");
    if (d["blocks"] != wanted / 32)
      return invalid_argument("quantize_rows: scale has ", d["blocks"], " columns, needs ", wanted / 32);
    return {};
  };
  return op;
}

Status quantize_rows(Stream& stream, const QuantizeRowsArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
