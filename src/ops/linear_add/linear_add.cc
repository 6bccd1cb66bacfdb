#include "ops/linear_add/linear_add.h"

#include <vector>

#include "kernels/rows16/rows16.h"
#include "ops/weight_row.h"

namespace ridge {

namespace {

void linear_add_reference(const LinearAddArgs& a) {
  for (int64_t o = 0; o < a.y.dim(1); ++o) {
    const std::vector<double> w = weight_row(a.w, o);
    for (int64_t t = 0; t < a.y.dim(0); ++t) {
      double sum = a.residual.f64(t, o) + (a.bias ? a.bias.f64(o) : 0);
      for (size_t k = 0; k < w.size(); ++k) sum += a.x.f64(t, static_cast<int64_t>(k)) * w[k];
      a.y.set(sum, t, o);
    }
  }
}

/// linear's: on a GPU plain types stay as in the file.
const PackedLayout* choose_linear_add_layout(const Target& target, DType dtype, const Shape&) {
  const bool packs = target.backend == "cpu" || (target.backend == "cuda" && is_block_quantized(dtype));
  return packs ? rows16::layout(dtype) : nullptr;
}

std::optional<LinearAddArgs> fuse_linear_add(const std::vector<const AnyCall*>& calls) {
  if (calls.size() != 2) return {};  // a cast of the sum has other readers beside it
  const AnyCall &linear = *calls[0], &add = *calls[1];
  const Tensor product = operand_of(linear, "y"), a = operand_of(add, "a"), b = operand_of(add, "b"),
               w = operand_of(linear, "w");
  if (operand_of(linear, "residual") || operand_of(linear, "x_scale") || a.data == b.data ||
      (a.data != product.data && b.data != product.data) || operand_of(add, "y").dtype != kF32 ||
      (w.dtype != kBF16 && !is_block_quantized(w.dtype)))
    return {};
  LinearAddArgs fused;
  fused.y = operand_of(add, "y"), fused.x = operand_of(linear, "x"), fused.w = w;
  fused.bias = operand_of(linear, "bias"), fused.residual = a.data == product.data ? b : a;
  return fused;
}

}  // namespace

Operator<LinearAddArgs> describe_linear_add() {
  using A = LinearAddArgs;
  Operator<A> op;
  op.name = "linear_add";
  op.shape_key = [](const A& a) { return text(a.y.dim(0), "x", a.y.dim(1), "x", a.w.dim(1)); };
  op.operands = {{"y", &A::y, kOut, kActivations, "tokens out", {kF32}},
                 {"x", &A::x, kIn, kActivations, "tokens in", {kBF16, kF32}},
                 {"w", &A::w, kIn, kWeights, "out in", {kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K}},
                 {"bias", &A::bias, kIn, kWeights, "out", {kF32}, true},
                 {"residual", &A::residual, kIn, kActivations, "tokens out", {kF32}}};
  op.flops = [](const Dims& d) { return (2 * d["in"] + 1) * d["tokens"] * d["out"]; };
  op.reference = linear_add_reference;
  op.case_dims = "tokens out in";
  op.cases = {{{0, 16, 256}},
              {{1, 1, 256}},
              {{1, 33, 512}},
              {{2, 17, 256}},
              {{1, 40, 768}},
              {{1, 16, 2304}},
              {{5, 48, 512}},
              {{1, 576, 576}, kSlow},
              {{1, 576, 1536}, kSlow},
              {{8, 4096, 4096}, kBench},
              {{8, 4096, 14336}, kBench}};
  // linear's: in + 2 terms, and a rounding of weights with a minimum.
  op.tolerance = {[](const Judged<A>& j, Tensor A::*, int64_t t, int64_t o, int64_t, int64_t) {
                    return static_cast<double>(j.dims["in"] + 4) * 0x1p-24 * j.magnitude.y.f64(t, o);
                  },
                  true};
  op.pack = {&A::w, choose_linear_add_layout, rows16::pack, rows16::kRows};
  op.replaces = {"linear", "add"};
  op.fuse = fuse_linear_add;
  return op;
}

Status linear_add(Stream& stream, const LinearAddArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
