#include "ops/norm_linear/norm_linear.h"

#include <vector>

#include "kernels/rows16/rows16.h"
#include "ops/weight_row.h"

namespace ridge {

namespace {

void norm_linear_reference(const NormLinearArgs& a) {
  for (int64_t t = 0; t < a.x.dim(0); ++t) {
    const std::vector<double> x = normalized_row(a.x, t, a.norm, a.epsilon, a.weight_offset);
    for (int64_t o = 0; o < a.y.dim(1); ++o) {
      const std::vector<double> w = weight_row(a.w, o);
      double sum = a.bias ? a.bias.f64(o) : 0;
      for (size_t k = 0; k < w.size(); ++k) sum += x[k] * w[k];
      a.y.set(sum, t, o);
    }
  }
}

/// linear's: on a GPU plain types stay as in the file.
const PackedLayout* choose_norm_linear_layout(const Target& target, DType dtype, const Shape&) {
  const bool packs = target.backend == "cpu" || (target.backend == "cuda" && is_block_quantized(dtype));
  return packs ? rows16::layout(dtype) : nullptr;
}

std::optional<NormLinearArgs> fuse_norm_linear(const std::vector<const AnyCall*>& calls) {
  if (calls.size() != 2) return {};
  const AnyCall &norm = *calls[0], &linear = *calls[1];
  const Tensor x = operand_of(norm, "x"), normed = operand_of(norm, "y"), w = operand_of(linear, "w");
  if (operand_of(linear, "x").data != normed.data || normed.dtype != kF32 || x.dtype != kF32 ||
      operand_of(linear, "residual") || operand_of(linear, "x_scale") || w.dtype == kF32)
    return {};
  NormLinearArgs a;
  a.y = operand_of(linear, "y"), a.x = x, a.norm = operand_of(norm, "w"), a.w = w;
  a.bias = operand_of(linear, "bias");
  a.epsilon = static_cast<float>(param_of(norm, "epsilon"));
  a.weight_offset = static_cast<float>(param_of(norm, "weight_offset"));
  return a;
}

}  // namespace

Operator<NormLinearArgs> describe_norm_linear() {
  using A = NormLinearArgs;
  Operator<A> op;
  op.name = "norm_linear";
  op.shape_key = [](const A& a) { return text(a.y.dim(0), "x", a.y.dim(1), "x", a.w.dim(1)); };
  op.operands = {
      {"y", &A::y, kOut, kActivations, "tokens out", {kF32}},
      {"x", &A::x, kIn, kActivations, "tokens in", {kF32}},
      {"norm", &A::norm, kIn, kWeights, "in", {kF32}},
      {"w", &A::w, kIn, kWeights, "out in", {kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K}},
      {"bias", &A::bias, kIn, kWeights, "out", {kF32}, true}};
  op.params = {{"epsilon", &A::epsilon}, {"weight_offset", &A::weight_offset}};
  op.flops = [](const Dims& d) { return (2 * d["out"] + 4) * d["tokens"] * d["in"]; };
  op.reference = norm_linear_reference;
  op.case_dims = "tokens out in";
  const auto gemma = [](A& a) { a.weight_offset = 1, a.epsilon = 1e-6f; };
  op.cases = {{{0, 16, 256}}, {{1, 1, 256}},   {{1, 33, 512}, 0, gemma, "gemma"},
              {{1, 70, 768}}, {{1, 16, 1024}}, {{1, 960, 576}, kBench}};
  // rms_norm's bound of each n, carried through, and linear's.
  op.tolerance = {[](const Judged<A>& j, Tensor A::*, int64_t t, int64_t o, int64_t, int64_t) {
                    const auto in = static_cast<double>(j.dims["in"]);
                    return (1.5 * in + 11) * 0x1p-24 * j.magnitude.y.f64(t, o);
                  },
                  true};
  op.pack = {&A::w, choose_norm_linear_layout, rows16::pack, rows16::kRows};
  op.check = [](const A& a, const Dims&) -> Status {
    if (!(a.epsilon >= 0)) return invalid_argument("epsilon is ", a.epsilon, ", needs to be at least 0");
    return {};
  };
  op.replaces = {"rms_norm", "linear"};
  op.fuse = fuse_norm_linear;
  return op;
}

Status norm_linear(Stream& stream, const NormLinearArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
