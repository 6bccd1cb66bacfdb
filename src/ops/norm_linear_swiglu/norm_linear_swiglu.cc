#include "ops/norm_linear_swiglu/norm_linear_swiglu.h"

#include <vector>

#include "ops/linear_gated.h"
#include "ops/weight_row.h"

namespace ridge {

namespace {

GatedProducts products(const NormLinearSwigluArgs& a, const std::vector<double>& x, int64_t i) {
  const std::vector<double> gate = weight_row(a.w_gate, i), up = weight_row(a.w_up, i);
  GatedProducts p;
  for (size_t k = 0; k < x.size(); ++k) {
    p.gate += x[k] * gate[k], p.gate_magnitude += std::fabs(x[k] * gate[k]);
    p.up += x[k] * up[k], p.up_magnitude += std::fabs(x[k] * up[k]);
  }
  return p;
}

void norm_linear_swiglu_reference(const NormLinearSwigluArgs& a) {
  for (int64_t t = 0; t < a.x.dim(0); ++t) {
    const std::vector<double> x = normalized_row(a.x, t, a.norm, a.epsilon, a.weight_offset);
    for (int64_t i = 0; i < a.y.dim(1); ++i) {
      const GatedProducts p = products(a, x, i);
      a.y.set(p.gate / (1 + std::exp(-p.gate)) * p.up, t, i);
    }
  }
}

/// rms_norm's bound of each n, carried through, and linear's.
double norm_linear_swiglu_bound(const Judged<NormLinearSwigluArgs>& j, int64_t t, int64_t i) {
  constexpr double kSlope = 1.1;  // of silu, at most
  const NormLinearSwigluArgs& a = j.inputs;
  const double unit = (1.5 * static_cast<double>(a.x.dim(1)) + 11) * 0x1p-24;
  const std::vector<double> x = normalized_row(a.x, t, a.norm, a.epsilon, a.weight_offset);
  return gated_bound(products(a, x, i), unit, j.reference.y.f64(t, i), kSlope);
}

std::optional<NormLinearSwigluArgs> fuse_norm_linear_swiglu(const std::vector<const AnyCall*>& calls) {
  if (calls.size() != 2) return {};
  const AnyCall &norm = *calls[0], &linear = *calls[1];
  const Tensor x = operand_of(norm, "x"), normed = operand_of(norm, "y"), y = operand_of(linear, "y");
  if (operand_of(linear, "x").data != normed.data || normed.dtype != kF32 || x.dtype != kF32 ||
      y.dtype != kF32)
    return {};
  NormLinearSwigluArgs a;
  a.y = y, a.x = x, a.norm = operand_of(norm, "w");
  a.w_gate = operand_of(linear, "w_gate"), a.w_up = operand_of(linear, "w_up");
  a.epsilon = static_cast<float>(param_of(norm, "epsilon"));
  a.weight_offset = static_cast<float>(param_of(norm, "weight_offset"));
  return a;
}

}  // namespace

Operator<NormLinearSwigluArgs> describe_norm_linear_swiglu() {
  using A = NormLinearSwigluArgs;
  Operator<A> op;
  op.name = "norm_linear_swiglu";
  op.shape_key = [](const A& a) { return text(a.y.dim(0), "x2x", a.y.dim(1), "x", a.x.dim(1)); };
  op.operands = {{"y", &A::y, kOut, kActivations, "tokens inner", {kF32}},
                 {"x", &A::x, kIn, kActivations, "tokens in", {kF32}},
                 {"norm", &A::norm, kIn, kWeights, "in", {kF32}},
                 {"w_gate",
                  &A::w_gate,
                  kIn,
                  kWeights,
                  "inner in",
                  {kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K}},
                 {"w_up", &A::w_up, kIn, kWeights, "inner in", {}, false, "w_gate"}};
  op.params = {{"epsilon", &A::epsilon}, {"weight_offset", &A::weight_offset}};
  op.flops = [](const Dims& d) { return ((4 * d["in"] + 5) * d["inner"] + 4 * d["in"]) * d["tokens"]; };
  op.reference = norm_linear_swiglu_reference;
  op.case_dims = "tokens inner in";
  const auto gemma = [](A& a) { a.weight_offset = 1, a.epsilon = 1e-6f; };
  op.cases = {{{0, 16, 32}},   {{1, 1, 8}},
              {{1, 17, 64}},   {{1, 75, 520}, 0, gemma, "gemma"},
              {{1, 40, 1024}}, {{1, 1536, 576}, kBench}};
  op.tolerance = {[](const Judged<A>& j, Tensor A::*, int64_t t, int64_t i, int64_t, int64_t) {
    return norm_linear_swiglu_bound(j, t, i);
  }};
  op.check = [](const A& a, const Dims&) -> Status {
    if (!(a.epsilon >= 0)) return invalid_argument("epsilon is ", a.epsilon, ", needs to be at least 0");
    return {};
  };
  op.replaces = {"rms_norm", "linear_swiglu"};
  op.fuse = fuse_norm_linear_swiglu;
  return op;
}

Status norm_linear_swiglu(Stream& stream, const NormLinearSwigluArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
