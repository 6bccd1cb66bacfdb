#include "ops/linear/linear.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/rows16/rows16.h"
#include "tensor/blocks.h"

namespace ridge {

void linear_reference(const LinearArgs& a);

namespace {

/// On a GPU plain types stay as in the file: its kernels read rows of them.
const PackedLayout* choose_linear_layout(const Target& target, DType dtype, const Shape&) {
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
/// larger than |w|. The minima are what a block with codes 0 decodes to. The parts of the row asked for last
/// are kept, with its bytes, by which it is known again.
class PartsOfSum {
 public:
  double operator()(const LinearArgs& a, int64_t t, int64_t o) {
    split(a.w, o);
    const int64_t step = a.x.stride(1);
    const auto* x = a.x.row<int8_t>(t);
    double sum = 0;
    for (int64_t b = 0; b < a.w.dim(1) / 32; ++b) {
      double block = 0;
      for (int64_t k = b * 32; k < b * 32 + 32; ++k)
        block += std::abs(x[k * step]) * parts_[static_cast<size_t>(k)];
      sum += block * std::fabs(a.x_scale.f64(t, b));
    }
    if (a.bias) sum += std::fabs(a.bias.f64(o));
    if (a.residual) sum += std::fabs(a.residual.f64(t, o));
    return sum;
  }

 private:
  void split(const Tensor& w, int64_t o) {
    const int64_t blocks = w.dim(1) / dtype_block(w.dtype), bytes = dtype_block_bytes(w.dtype);
    const uint8_t* row = w.as<uint8_t>() + o * blocks * bytes;
    const auto row_bytes = static_cast<size_t>(blocks * bytes);
    if (w.dtype == dtype_ && row_.size() == row_bytes &&
        (row_bytes == 0 || std::memcmp(row, row_.data(), row_bytes) == 0))
      return;
    dtype_ = w.dtype, row_.assign(row, row + row_bytes), parts_.clear();
    const int64_t code_bytes = dtype_block(w.dtype) / 2;  // 4-bit codes end a block of q4_1 and q4_k
    for (int64_t b = 0; b < blocks; ++b) {
      uint8_t empty[256];
      double minimum[256], value[256];
      decode_block(dtype_, row, b, value);
      std::memcpy(empty, row + b * bytes, static_cast<size_t>(bytes));
      std::memset(empty + bytes - code_bytes, 0, static_cast<size_t>(code_bytes));
      decode_block(dtype_, empty, 0, minimum);
      for (int64_t i = 0; i < dtype_block(dtype_); ++i)
        parts_.push_back(std::fabs(value[i] - minimum[i]) + std::fabs(minimum[i]));
    }
  }
  DType dtype_ = kF32;
  std::vector<uint8_t> row_;
  std::vector<double> parts_;
};

/// Floating x: an f32 sum of in + 2 terms; weights of types with a minimum round once more. i8 x: sums of 32
/// products are exact integers, so one term a block of 32 (two for types with a minimum), each with the
/// rounding of its scale.
double linear_bound(const Judged<LinearArgs>& j, PartsOfSum& parts, int64_t t, int64_t o) {
  const LinearArgs& a = j.inputs;
  const double magnitude = j.magnitude.y.f64(t, o);
  const auto in = static_cast<double>(j.dims["in"]);
  if (a.x.dtype != kI8) {
    // A type with a minimum decodes to |scale code + minimum| (1 + 2^-24).
    return (in + 3 + (rows16::has_minimum(a.w.dtype) ? 1 : 0)) * 0x1p-24 * magnitude;
  }
  if (rows16::has_minimum(a.w.dtype)) return (2 * in / 32 + 3) * 0x1p-24 * parts(a, t, o);
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
      [parts = std::make_shared<PartsOfSum>()](const Judged<A>& j, Tensor A::*, int64_t t, int64_t o, int64_t,
                                               int64_t) { return linear_bound(j, *parts, t, o); },
      true};
  op.pack = {&A::w, choose_linear_layout, rows16::pack, rows16::kRows};
  op.check = check_linear;
  return op;
}

Status linear(Stream& stream, const LinearArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
