#include "ops/linear_qkv/linear_qkv.h"

#include <vector>

#include "kernels/rows16/rows16.h"

namespace ridge {

namespace {

struct Matrix {
  Tensor LinearQkvArgs::*y;
  Tensor LinearQkvArgs::*w;
  Tensor LinearQkvArgs::*bias;
};
constexpr Matrix kMatrices[] = {{&LinearQkvArgs::q, &LinearQkvArgs::w_q, &LinearQkvArgs::bias_q},
                                {&LinearQkvArgs::k, &LinearQkvArgs::w_k, &LinearQkvArgs::bias_k},
                                {&LinearQkvArgs::v, &LinearQkvArgs::w_v, &LinearQkvArgs::bias_v}};

void linear_qkv_reference(const LinearQkvArgs& a) {
  const int64_t in = a.x.dim(1);
  std::vector<float> row(static_cast<size_t>(in));
  for (const Matrix& m : kMatrices) {
    const Tensor &y = a.*m.y, &w = a.*m.w, &bias = a.*m.bias;
    for (int64_t o = 0; o < y.dim(1); ++o) {
      // Packed weights come here only when no kernel takes the call.
      if (w.layout != nullptr) rows16::decode_row(w.dtype, w.data, in, o, row.data());
      for (int64_t t = 0; t < y.dim(0); ++t) {
        double sum = bias ? bias.f64(o) : 0;
        for (int64_t i = 0; i < in; ++i)
          sum += a.x.f64(t, i) * (w.layout != nullptr ? double{row[static_cast<size_t>(i)]} : w.f64(o, i));
        y.set(sum, t, o);
      }
    }
  }
}

/// The outputs of a call without residual and code scales, or nothing.
bool is_plain(const AnyCall& call) {
  return !operand_of(call, "residual") && !operand_of(call, "x_scale");
}

std::optional<LinearQkvArgs> fuse_linear_qkv(const std::vector<const AnyCall*>& calls) {
  LinearQkvArgs a;
  a.x = operand_of(*calls[0], "x");
  const Tensor first = operand_of(*calls[0], "w");
  for (size_t i = 0; i < 3; ++i) {
    const Tensor w = operand_of(*calls[i], "w");
    if (!is_plain(*calls[i]) || operand_of(*calls[i], "x").data != a.x.data || w.dtype != first.dtype ||
        w.layout != first.layout ||
        !bool(operand_of(*calls[i], "bias")) != !bool(operand_of(*calls[0], "bias")))
      return {};
    a.*kMatrices[i].y = operand_of(*calls[i], "y"), a.*kMatrices[i].w = w;
    a.*kMatrices[i].bias = operand_of(*calls[i], "bias");
  }
  return a;
}

}  // namespace

Operator<LinearQkvArgs> describe_linear_qkv() {
  using A = LinearQkvArgs;
  Operator<A> op;
  op.name = "linear_qkv";
  op.shape_key = [](const A& a) {
    return text(a.x.dim(0), "x", a.w_q.dim(0), "+", a.w_k.dim(0), "+", a.w_v.dim(0), "x", a.x.dim(1));
  };
  const std::vector<DType> stored = {kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K};
  op.operands = {{"q", &A::q, kOut, kActivations, "tokens q_out", {kF32}},
                 {"k", &A::k, kOut, kActivations, "tokens k_out", {kF32}},
                 {"v", &A::v, kOut, kActivations, "tokens v_out", {kF32}},
                 {"x", &A::x, kIn, kActivations, "tokens in", {kF32, kBF16}},
                 {"w_q", &A::w_q, kIn, kWeights, "q_out in", stored},
                 {"w_k", &A::w_k, kIn, kWeights, "k_out in", {}, false, "w_q"},
                 {"w_v", &A::w_v, kIn, kWeights, "v_out in", {}, false, "w_q"},
                 {"bias_q", &A::bias_q, kIn, kWeights, "q_out", {kF32}, true},
                 {"bias_k", &A::bias_k, kIn, kWeights, "k_out", {kF32}, true},
                 {"bias_v", &A::bias_v, kIn, kWeights, "v_out", {kF32}, true}};
  op.flops = [](const Dims& d) { return 2 * d["tokens"] * d["in"] * (d["q_out"] + d["k_out"] + d["v_out"]); };
  op.reference = linear_qkv_reference;
  op.case_dims = "tokens q_out k_out v_out in";
  op.cases = {{{0, 16, 16, 16, 32}},
              {{1, 1, 1, 1, 8}},
              {{1, 48, 16, 17, 64}},
              {{2, 70, 33, 32, 96}},
              {{3, 64, 0, 16, 40}},
              {{11, 40, 16, 16, 256}},
              {{1, 576, 192, 192, 576}, kBench},
              {{8, 4096, 1024, 1024, 4096}, kBench}};
  op.choice_exists = [](const A& a) {
    return bool(a.bias_q) == bool(a.bias_k) && bool(a.bias_q) == bool(a.bias_v);
  };
  // linear's: in + 1 terms, and a rounding of weights with a minimum.
  op.tolerance = {[](const Judged<A>& j, Tensor A::*out, int64_t t, int64_t o, int64_t, int64_t) {
                    return static_cast<double>(j.dims["in"] + 4) * 0x1p-24 * (j.magnitude.*out).f64(t, o);
                  },
                  true};
  op.replaces = {"linear", "linear", "linear"};
  op.fuse = fuse_linear_qkv;
  return op;
}

Status linear_qkv(Stream& stream, const LinearQkvArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
