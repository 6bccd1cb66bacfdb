#include "ops/rope/rope.h"

namespace ridge {

void rope_reference(const RopeArgs& a);

namespace {

void prepare_rope(RopeArgs& a, const Dims&, Random& random) {
  for (int64_t t = 0; t < a.positions.elements(); ++t)
    a.positions.set(static_cast<double>(t == 0 ? 60000 : random.below(int64_t{1} << (t % 31))), t);
  const auto pairs = static_cast<double>(a.frequencies.dim(0));
  for (int64_t i = 0; i < a.frequencies.dim(0); ++i)
    a.frequencies.set(std::pow(10000.0, -static_cast<double>(i) / pairs), i);
}

/// Each rotated element is two products of inputs with a table value that is off by `kTable` u of the
/// magnitude (README.md), and three more roundings.
double rope_bound(const Judged<RopeArgs>& judged, Tensor RopeArgs::*, int64_t t, int64_t h, int64_t d,
                  int64_t) {
  constexpr double kTable = 2.5, kRoundings = 2;
  const RopeArgs& a = judged.inputs;
  const int64_t pairs = a.frequencies.dim(0);
  if (d >= 2 * pairs) return 0;
  const int64_t partner = a.interleaved ? d ^ 1 : d < pairs ? d + pairs : d - pairs;
  return (kTable + kRoundings) * 0x1p-24 * std::fabs(a.magnitude) *
         (std::fabs(a.x.f64(t, h, d)) + std::fabs(a.x.f64(t, h, partner)));
}

Status check_rope(const RopeArgs& a, const Dims& d) {
  if (2 * d["pairs"] > d["head_dim"])
    return invalid_argument("frequencies has ", d["pairs"], " pairs, which rotate ", 2 * d["pairs"],
                            " elements; x has head_dim ", d["head_dim"]);
  if (!std::isfinite(a.magnitude))
    return invalid_argument("magnitude is ", a.magnitude, ", needs a finite number");
  return {};
}

}  // namespace

Operator<RopeArgs> describe_rope() {
  using A = RopeArgs;
  Operator<A> op;
  op.name = "rope";
  op.operands = {{"x", &A::x, kInOut, kActivations, "tokens heads head_dim", {kF32, kBF16}},
                 {"positions", &A::positions, kIn, kIndices, "tokens", {kI32, kI64}},
                 {"frequencies", &A::frequencies, kIn, kScales, "pairs", {kF32}}};
  op.params = {{"interleaved", &A::interleaved}, {"magnitude", &A::magnitude}, {"settled", &A::settled}};
  // Two products and a sum for each rotated element; the table is shared by the heads of a token.
  op.flops = [](const Dims& d) { return d["tokens"] * d["heads"] * 2 * d["pairs"] * 3; };
  op.touched = {{"x", [](const Dims& d) { return d["tokens"] * d["heads"] * 2 * d["pairs"]; }}};
  op.reference = rope_reference;
  op.case_dims = "tokens heads head_dim pairs";
  const auto interleaved = [](A& a) { a.interleaved = true; };
  const auto scaled = [](A& a) { a.magnitude = 1.25f; };
  const auto scaled_interleaved = [](A& a) { a.interleaved = true, a.magnitude = 1.25f; };
  op.cases = {{{0, 2, 8, 4}},
              {{1, 1, 1, 0}},
              {{2, 1, 2, 1}},
              {{2, 3, 46, 23}},
              {{2, 3, 46, 23}, 0, interleaved},
              {{5, 3, 64, 32}, 0, scaled},
              {{5, 3, 64, 32}, 0, scaled_interleaved},
              {{33, 2, 128, 32}, 0, nullptr, "K25"},
              {{33, 2, 128, 32}, 0, interleaved, "K25"},
              {{2, 1, 80, 7}},
              {{2, 1, 80, 7}, 0, interleaved},
              {{2, 2, 1200, 600}, 0, nullptr, "more pairs than one table holds"},
              {{2, 2, 1200, 600}, 0, interleaved, "more pairs than one table holds"},
              {{1, 32, 128, 64}, kBench},
              {{512, 9, 64, 32}, kBench}};
  // The sines of a token serve all of its heads.
  op.pace_dims = [](const A& a) { return std::vector<int64_t>{a.x.dim(1), a.frequencies.dim(0)}; };
  for (const int64_t heads : {1, 3, 9, 32})
    for (const int64_t pairs : {32, 64, 128})
      for (const int64_t tokens : {1, 32}) op.pace.push_back({{tokens, heads, 2 * pairs, pairs}});
  op.prepare = prepare_rope;
  op.tolerance = {rope_bound, false};
  op.check = check_rope;
  return op;
}

Status rope(Stream& stream, const RopeArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
