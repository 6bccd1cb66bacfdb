#include "ops/rms_norm/rms_norm.h"

namespace ridge {

void rms_norm_reference(const RmsNormArgs& a);

Operator<RmsNormArgs> describe_rms_norm() {
  using A = RmsNormArgs;
  Operator<A> op;
  op.name = "rms_norm";
  op.operands = {{"y", &A::y, kOut, kActivations, "rows hidden", {kF32, kBF16}},
                 {"x", &A::x, kIn, kActivations, "rows hidden", {kF32, kBF16}},
                 {"w", &A::w, kIn, kWeights, "hidden", {kF32}}};
  op.params = {{"epsilon", &A::epsilon}, {"weight_offset", &A::weight_offset}};
  // A square and a sum per element, a scale and a weight: 4.
  op.flops = [](const Dims& d) { return 4 * d["rows"] * d["hidden"]; };
  op.reference = rms_norm_reference;
  op.case_dims = "rows hidden";
  op.cases = {{{0, 64}},
              {{1, 1}},
              {{2, 2}},
              {{3, 3}},
              {{2, 7}},
              {{5, 46}},
              {{3, 576}},
              {{2, 2560}},
              {{2, 3584}},
              {{1, 3586}},
              {{3, 40}, 0, [](A& a) { a.weight_offset = 1, a.epsilon = 1e-6f; }, "gemma"},
              {{1, 4096}, kBench},
              {{64, 4096}, kBench},
              {{512, 576}, kBench}};
  op.pace_dims = [](const A& a) { return std::vector<int64_t>{a.x.dim(1)}; };
  op.pace = {{{1, 256}}, {{64, 256}}, {{1, 1024}}, {{32, 1024}}};
  // The sum of `hidden` squares is off by (hidden + 2) u, its root by half of that; four roundings follow.
  op.tolerance = {[](const Judged<A>& j, Tensor A::*out, int64_t r, int64_t h, int64_t, int64_t) {
                    return (0.5 * static_cast<double>(j.dims["hidden"]) + 7) * 0x1p-24 *
                           (j.magnitude.*out).f64(r, h);
                  },
                  true};
  op.check = [](const A& a, const Dims&) -> Status {
    if (!(a.epsilon >= 0)) return invalid_argument("epsilon is ", a.epsilon, ", needs to be at least 0");
    return {};
  };
  return op;
}

Status rms_norm(Stream& stream, const RmsNormArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
