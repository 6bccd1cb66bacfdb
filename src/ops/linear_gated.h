#pragma once
// What linear_swiglu and linear_geglu have in common: y = activation(x · w_gateᵀ) * (x · w_upᵀ), the two
// products and what joins them in one launch.

#include <cmath>

#include "ops/any_operator.h"
#include "ops/operator.h"

namespace ridge {

struct LinearGated {
  Tensor y;       // out [tokens, inner] f32, bf16
  Tensor x;       // in  [tokens, in] f32, bf16
  Tensor w_gate;  // in  [inner, in] f16, bf16, q8_0 … q6_k; plain as in the file, quantized in linear's
                  // packed layout
  Tensor w_up;    // in  [inner, in], dtype and layout of w_gate
};

/// Sums over `in` in double; packed weights are decoded.
void linear_gated_reference(const LinearGated& a, double (*activation)(double));

/// The two sums of an output, and those of the magnitudes of their terms.
struct GatedProducts {
  double gate = 0, up = 0, gate_magnitude = 0, up_magnitude = 0;
};
/// Largest error of y when the products are off by `unit` of their magnitudes: `slope` bounds |activation'|.
double gated_bound(const GatedProducts& p, double unit, double y, double slope);
/// Largest error of y[t, i] when the products are off as linear's may be: `slope` bounds |activation'|.
double linear_gated_bound(const LinearGated& a, double y, int64_t t, int64_t i, double slope);

/// One token and few plain weights: on an H200 a step of Qwen3-0.6B's shape takes 1077 us with the parts,
/// 1097 fused (docs/kernels/fusions.md); from Llama-3-8B's shape on, and of quantized weights, it gains.
inline bool is_faster_apart(const Tensor& x, const Tensor& w_gate) {
  constexpr int64_t kLeastBytes = int64_t{16} << 20;  // of both matrices
  return x.dim(0) == 1 && !is_block_quantized(w_gate.dtype) && 2 * w_gate.bytes() < kLeastBytes;
}

template <class A>
Operator<A> describe_linear_gated(const char* name, const char* gated, void (*reference)(const A&),
                                  double slope) {
  Operator<A> op;
  op.name = name;
  op.shape_key = [](const A& a) { return text(a.y.dim(0), "x2x", a.y.dim(1), "x", a.x.dim(1)); };
  op.operands = {{"y", &A::y, kOut, kActivations, "tokens inner", {kF32, kBF16}},
                 {"x", &A::x, kIn, kActivations, "tokens in", {kF32, kBF16}},
                 {"w_gate",
                  &A::w_gate,
                  kIn,
                  kWeights,
                  "inner in",
                  {kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K}},
                 {"w_up", &A::w_up, kIn, kWeights, "inner in", {}, false, "w_gate"}};
  op.flops = [](const Dims& d) { return (4 * d["in"] + 5) * d["tokens"] * d["inner"]; };
  op.reference = reference;
  op.case_dims = "tokens inner in";
  op.cases = {{{0, 16, 32}},
              {{1, 1, 8}},
              {{1, 17, 64}},
              {{2, 33, 96}},
              {{3, 48, 40}},
              {{11, 40, 256}},
              {{7, 75, 520}},
              {{70, 40, 136}},
              {{1, 1536, 576}, kBench},
              {{8, 14336, 4096}, kBench}};
  op.tolerance = {[slope](const Judged<A>& j, Tensor A::*, int64_t t, int64_t i, int64_t, int64_t) {
    return linear_gated_bound(j.inputs, j.reference.y.f64(t, i), t, i, slope);
  }};
  op.replaces = {"linear", "linear", gated};
  op.fuse = [](const std::vector<const AnyCall*>& calls) -> std::optional<A> {
    const AnyCall &gate = *calls[0], &up = *calls[1], &join = *calls[2];
    const auto plain = [](const AnyCall& call) {
      return !operand_of(call, "bias") && !operand_of(call, "residual");
    };
    const Tensor x = operand_of(gate, "x"), w_gate = operand_of(gate, "w"), w_up = operand_of(up, "w");
    if (operand_of(up, "x").data != x.data || operand_of(gate, "x_scale") || !plain(gate) || !plain(up) ||
        operand_of(join, "gate").data != operand_of(gate, "y").data ||
        operand_of(join, "up").data != operand_of(up, "y").data || w_gate.dtype != w_up.dtype ||
        w_gate.layout != w_up.layout || !(w_gate.shape == w_up.shape) || is_faster_apart(x, w_gate))
      return {};
    A a;
    a.y = operand_of(join, "y"), a.x = x, a.w_gate = w_gate, a.w_up = w_up;
    if (calls.size() == 4) {  // and the cast of y
      if (operand_of(*calls[3], "x").data != a.y.data) return {};
      a.y = operand_of(*calls[3], "y");
    }
    return a;
  };
  return op;
}

}  // namespace ridge
