#include "ops/norm_linear_qkv/norm_linear_qkv.h"

#include <vector>

#include "ops/weight_row.h"

namespace ridge {

namespace {

struct NormedMatrix {
  Tensor NormLinearQkvArgs::*y;
  Tensor NormLinearQkvArgs::*w;
  Tensor NormLinearQkvArgs::*bias;
};
constexpr NormedMatrix kNormedMatrices[] = {
    {&NormLinearQkvArgs::q, &NormLinearQkvArgs::w_q, &NormLinearQkvArgs::bias_q},
    {&NormLinearQkvArgs::k, &NormLinearQkvArgs::w_k, &NormLinearQkvArgs::bias_k},
    {&NormLinearQkvArgs::v, &NormLinearQkvArgs::w_v, &NormLinearQkvArgs::bias_v}};

void norm_linear_qkv_reference(const NormLinearQkvArgs& a) {
  for (int64_t t = 0; t < a.x.dim(0); ++t) {
    const std::vector<double> x = normalized_row(a.x, t, a.norm, a.epsilon, a.weight_offset);
    for (const NormedMatrix& m : kNormedMatrices)
      for (int64_t o = 0; o < (a.*m.y).dim(1); ++o) {
        const std::vector<double> w = weight_row(a.*m.w, o);
        double sum = a.*m.bias ? (a.*m.bias).f64(o) : 0;
        for (size_t k = 0; k < w.size(); ++k) sum += x[k] * w[k];
        (a.*m.y).set(sum, t, o);
      }
  }
}

std::optional<NormLinearQkvArgs> fuse_norm_linear_qkv(const std::vector<const AnyCall*>& calls) {
  if (calls.size() != 2) return {};
  const AnyCall &norm = *calls[0], &linear = *calls[1];
  const Tensor x = operand_of(norm, "x"), normed = operand_of(norm, "y");
  if (operand_of(linear, "x").data != normed.data || normed.dtype != kF32 || x.dtype != kF32) return {};
  NormLinearQkvArgs a;
  a.x = x, a.norm = operand_of(norm, "w");
  a.epsilon = static_cast<float>(param_of(norm, "epsilon"));
  a.weight_offset = static_cast<float>(param_of(norm, "weight_offset"));
  a.q = operand_of(linear, "q"), a.k = operand_of(linear, "k"), a.v = operand_of(linear, "v");
  a.w_q = operand_of(linear, "w_q"), a.w_k = operand_of(linear, "w_k"), a.w_v = operand_of(linear, "w_v");
  a.bias_q = operand_of(linear, "bias_q"), a.bias_k = operand_of(linear, "bias_k"),
  a.bias_v = operand_of(linear, "bias_v");
  return a;
}

}  // namespace

Operator<NormLinearQkvArgs> describe_norm_linear_qkv() {
  using A = NormLinearQkvArgs;
  Operator<A> op;
  op.name = "norm_linear_qkv";
  op.shape_key = [](const A& a) {
    return text(a.x.dim(0), "x", a.w_q.dim(0), "+", a.w_k.dim(0), "+", a.w_v.dim(0), "x", a.x.dim(1));
  };
  const std::vector<DType> stored = {kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K};
  op.operands = {{"q", &A::q, kOut, kActivations, "tokens q_out", {kF32}},
                 {"k", &A::k, kOut, kActivations, "tokens k_out", {kF32}},
                 {"v", &A::v, kOut, kActivations, "tokens v_out", {kF32}},
                 {"x", &A::x, kIn, kActivations, "tokens in", {kF32}},
                 {"norm", &A::norm, kIn, kWeights, "in", {kF32}},
                 {"w_q", &A::w_q, kIn, kWeights, "q_out in", stored},
                 {"w_k", &A::w_k, kIn, kWeights, "k_out in", {}, false, "w_q"},
                 {"w_v", &A::w_v, kIn, kWeights, "v_out in", {}, false, "w_q"},
                 {"bias_q", &A::bias_q, kIn, kWeights, "q_out", {kF32}, true},
                 {"bias_k", &A::bias_k, kIn, kWeights, "k_out", {kF32}, true},
                 {"bias_v", &A::bias_v, kIn, kWeights, "v_out", {kF32}, true}};
  op.params = {{"epsilon", &A::epsilon}, {"weight_offset", &A::weight_offset}};
  op.flops = [](const Dims& d) {
    return (2 * (d["q_out"] + d["k_out"] + d["v_out"]) + 4) * d["tokens"] * d["in"];
  };
  op.reference = norm_linear_qkv_reference;
  op.case_dims = "tokens q_out k_out v_out in";
  const auto gemma = [](A& a) { a.weight_offset = 1, a.epsilon = 1e-6f; };
  op.cases = {{{0, 16, 16, 16, 32}},   {{1, 1, 1, 1, 8}},
              {{1, 48, 16, 17, 64}},   {{1, 70, 33, 32, 520}, 0, gemma, "gemma"},
              {{1, 40, 16, 16, 1024}}, {{1, 576, 192, 192, 576}, kBench}};
  op.choice_exists = [](const A& a) {
    return bool(a.bias_q) == bool(a.bias_k) && bool(a.bias_q) == bool(a.bias_v);
  };
  // rms_norm's bound of each n, carried through, and linear's.
  op.tolerance = {[](const Judged<A>& j, Tensor A::*out, int64_t t, int64_t o, int64_t, int64_t) {
                    const auto in = static_cast<double>(j.dims["in"]);
                    return (1.5 * in + 11) * 0x1p-24 * (j.magnitude.*out).f64(t, o);
                  },
                  true};
  op.check = [](const A& a, const Dims&) -> Status {
    if (!(a.epsilon >= 0)) return invalid_argument("epsilon is ", a.epsilon, ", needs to be at least 0");
    return {};
  };
  op.replaces = {"rms_norm", "linear_qkv"};
  op.fuse = fuse_norm_linear_qkv;
  return op;
}

Status norm_linear_qkv(Stream& stream, const NormLinearQkvArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
