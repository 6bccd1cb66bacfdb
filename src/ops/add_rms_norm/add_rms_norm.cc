#include "ops/add_rms_norm/add_rms_norm.h"

#include <cmath>

namespace ridge {

void add_rms_norm_reference(const AddRmsNormArgs& a) {
  const int64_t rows = a.sum.dim(0), hidden = a.sum.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t h = 0; h < hidden; ++h) {
      a.sum.set(a.a.f64(r, h) + a.b.f64(r, h), r, h);
      squares += a.sum.f64(r, h) * a.sum.f64(r, h);
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + a.epsilon);
    for (int64_t h = 0; h < hidden; ++h)
      a.y.set(a.sum.f64(r, h) * scale * (a.w.f64(h) + a.weight_offset), r, h);
  }
}

Operator<AddRmsNormArgs> describe_add_rms_norm() {
  using A = AddRmsNormArgs;
  Operator<A> op;
  op.name = "add_rms_norm";
  op.operands = {{"sum", &A::sum, kOut, kActivations, "rows hidden", {kF32}},
                 {"y", &A::y, kOut, kActivations, "rows hidden", {kF32, kBF16}},
                 {"a", &A::a, kIn, kActivations, "rows hidden", {kF32}},
                 {"b", &A::b, kIn, kActivations, "rows hidden", {kF32}},
                 {"w", &A::w, kIn, kWeights, "hidden", {kF32}}};
  op.params = {{"epsilon", &A::epsilon}, {"weight_offset", &A::weight_offset}};
  op.flops = [](const Dims& d) { return 5 * d["rows"] * d["hidden"]; };
  op.reference = add_rms_norm_reference;
  op.case_dims = "rows hidden";
  op.cases = {{{0, 64}},
              {{1, 1}},
              {{2, 2}},
              {{2, 7}},
              {{5, 46}},
              {{3, 576}},
              {{1, 3586}},
              {{3, 40}, 0, [](A& a) { a.weight_offset = 1, a.epsilon = 1e-6f; }, "gemma"},
              {{1, 4096}, kBench},
              {{512, 576}, kBench}};
  op.pace_dims = [](const A& a) { return std::vector<int64_t>{a.a.dim(1)}; };
  op.pace = {{{1, 256}}, {{64, 256}}, {{1, 1024}}, {{32, 1024}}};
  // The reference rounds each sum to f32 as the kernel does, so sum is exact; y as in rms_norm.
  op.tolerance = {[](const Judged<A>& j, Tensor A::*out, int64_t r, int64_t h, int64_t, int64_t) {
    if (out == &A::sum) return 0.0;
    const double w = j.inputs.w.f64(h) + j.inputs.weight_offset,
                 ref = std::fabs((j.reference.*out).f64(r, h));
    const double cancelled =
        std::fabs(w) > 0 ? (std::fabs(j.inputs.w.f64(h)) + j.inputs.weight_offset) / std::fabs(w) : 1;
    return (0.5 * static_cast<double>(j.dims["hidden"]) + 7) * 0x1p-24 * ref * cancelled;
  }};
  op.check = [](const A& a, const Dims&) -> Status {
    if (!(a.epsilon >= 0)) return invalid_argument("epsilon is ", a.epsilon, ", needs to be at least 0");
    return {};
  };
  op.replaces = {"add", "rms_norm"};
  op.fuse = [](const std::vector<const AnyCall*>& calls) -> std::optional<A> {
    const AnyCall &sum = *calls[0], &norm = *calls[1];
    if (operand_of(norm, "x").data != operand_of(sum, "y").data || operand_of(sum, "y").dtype != kF32)
      return {};
    A a{operand_of(sum, "y"), operand_of(norm, "y"), operand_of(sum, "a"), operand_of(sum, "b"),
        operand_of(norm, "w")};
    a.epsilon = static_cast<float>(param_of(norm, "epsilon"));
    a.weight_offset = static_cast<float>(param_of(norm, "weight_offset"));
    return a;
  };
  return op;
}

Status add_rms_norm(Stream& stream, const AddRmsNormArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
