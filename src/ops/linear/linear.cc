#include "ops/linear/linear.h"

#include <cmath>

#include "kernels/rows16/rows16.h"
#include "tensor/blocks.h"

namespace ridge {

void linear_reference(const LinearArgs& a);

namespace {

/// On a GPU plain types stay as in the file: its kernels read rows of them.
const PackedLayout* choose_layout(const Target& target, DType dtype, const Shape&) {
  const bool packs = target.backend == "cpu" || (target.backend == "cuda" && is_block_quantized(dtype));
  return packs ? rows16::layout(dtype) : nullptr;
}

Status check_linear(const LinearArgs& a, const Dims& dims) {
  if (a.x.dtype != kI8) {
    if (a.x_scale)
      return invalid_argument("linear: x_scale is given for ", dtype_name(a.x.dtype), " x: leave it out");
    return {};
  }
  if (!is_block_quantized(a.w.dtype))
    return invalid_argument("linear: x is i8 with w ", dtype_name(a.w.dtype),
                            ": needs a block-quantized w, or f32 or bf16 x");
  if (!a.x_scale && dims["in"] * dims["tokens"] > 0)
    return invalid_argument("linear: x is i8 and x_scale is missing: pass quantize_rows' scale");
  if (a.x_scale && dims["blocks"] != dims["in"] / 32)
    return invalid_argument("linear: x_scale has ", dims["blocks"],
                            " columns, needs in / 32 = ", dims["in"] / 32);
  return {};
}

/// sum_k |x| (|scale code| + |minimum|) of a type with a minimum: its two parts are summed apart, and may be
/// larger than |w|. The minima are what a block with codes 0 decodes to.
double parts_of_sum(const LinearArgs& a, int64_t t, int64_t o) {
  const int64_t in = a.w.dim(1), block = dtype_block(a.w.dtype), bytes = dtype_block_bytes(a.w.dtype);
  const int64_t code_bytes = block / 2;  // 4-bit codes end a block of q4_1 and q4_k
  double sum = 0;
  for (int64_t b = 0; b < in / block; ++b) {
    uint8_t empty[256];
    double minimum[256], value[256];
    std::memcpy(empty, a.w.as<uint8_t>() + (o * (in / block) + b) * bytes, static_cast<size_t>(bytes));
    decode_block(a.w.dtype, empty, 0, value);
    std::memset(empty + bytes - code_bytes, 0, static_cast<size_t>(code_bytes));
    decode_block(a.w.dtype, empty, 0, minimum);
    for (int64_t i = 0; i < block; ++i) {
      const int64_t k = b * block + i;
      sum += std::fabs(a.x.f64(t, k) * a.x_scale.f64(t, k / 32)) *
             (std::fabs(value[i] - minimum[i]) + std::fabs(minimum[i]));
    }
  }
  if (a.bias) sum += std::fabs(a.bias.f64(o));
  if (a.residual) sum += std::fabs(a.residual.f64(t, o));
  return sum;
}

/// Floating x: an f32 sum of in + 2 terms; weights of types with a minimum round once more. i8 x: sums of 32
/// products are exact integers, so one term a block of 32 (two for types with a minimum), each with the
/// rounding of its scale.
double bound(const Judged<LinearArgs>& j, int64_t t, int64_t o) {
  const LinearArgs& a = j.inputs;
  const double magnitude = j.magnitude.y.f64(t, o);
  const auto in = static_cast<double>(j.dims["in"]);
  if (a.x.dtype != kI8) {
    // A type with a minimum decodes to |scale code + minimum| (1 + 2^-24).
    return (in + 3 + (rows16::has_minimum(a.w.dtype) ? 1 : 0)) * 0x1p-24 * magnitude;
  }
  if (rows16::has_minimum(a.w.dtype)) return (2 * in / 32 + 3) * 0x1p-24 * parts_of_sum(a, t, o);
  return (in / 32 + 3) * 0x1p-24 * magnitude;
}

}  // namespace

Operator<LinearArgs> describe_linear() {
  using A = LinearArgs;
  Operator<A> op;
  op.name = "linear";
  op.shape_key = [](const A& a) { return text(a.y.dim(0), "x", a.y.dim(1), "x", a.w.dim(1)); };  // M x N x K
  op.operands = {
      {"y", &A::y, kOut, kActivations, "tokens out", {kF32}},
      {"x", &A::x, kIn, kActivations, "tokens in", {kF32, kBF16, kI8}},
      {"x_scale", &A::x_scale, kIn, kScales, "tokens blocks", {kF32}, true},
      {"w", &A::w, kIn, kWeights, "out in", {kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K}},
      {"bias", &A::bias, kIn, kWeights, "out", {kF32}, true},
      {"residual", &A::residual, kIn, kActivations, "tokens out", {kF32}, true}};
  op.flops = [](const Dims& d) { return 2 * d["tokens"] * d["out"] * d["in"]; };
  op.reference = linear_reference;
  op.case_dims = "tokens out in blocks";
  op.cases = {{{0, 16, 32, 1}},
              {{2, 0, 32, 1}},
              {{2, 5, 0, 0}},
              {{1, 1, 1, 0}},
              {{1, 1, 32, 1}},
              {{3, 17, 7, 0}},
              {{2, 16, 33, 1}},
              {{1, 65, 96, 3}},
              {{5, 33, 64, 2}},
              {{33, 129, 127, 3}, 0, nullptr, "K1 shape"},
              {{17, 40, 256, 8}},
              {{1, 130, 512, 16}},
              {{35, 18, 288, 9}},
              {{1, 2048, 2048, 64}, kBench},
              {{1, 8192, 2048, 64}, kBench},
              {{1, 2048, 8192, 256}, kBench},
              {{8, 2048, 2048, 64}, kBench},
              {{512, 2048, 2048, 64}, kBench},
              {{1, 1536, 576, 18}, kBench},
              {{512, 1536, 576, 18}, kBench}};
  op.pace_dims = [](const A& a) { return std::vector<int64_t>{a.x.dim(0), a.x.dim(1)}; };
  for (const int64_t tokens : {1, 8, 32, 128})
    for (const int64_t in : {512, 1536})
      for (const int64_t out : {32, 96}) op.pace.push_back({{tokens, out, in, in / 32}});
  op.choice_exists = [](const A& a) {
    if (a.x.dtype != kI8) return !a.x_scale;
    return is_block_quantized(a.w.dtype) && a.x_scale && a.x_scale.dim(1) == a.x.dim(1) / 32;
  };
  op.tolerance = {
      [](const Judged<A>& j, Tensor A::*, int64_t t, int64_t o, int64_t, int64_t) { return bound(j, t, o); },
      true};
  op.pack = {&A::w, choose_layout, rows16::pack, rows16::kRows};
  op.check = check_linear;
  return op;
}

Status linear(Stream& stream, const LinearArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
