#include "ops/gelu_mul/gelu_mul.h"

namespace ridge {

void gelu_mul_reference(const GeluMulArgs& a);

Operator<GeluMulArgs> describe_gelu_mul() {
  using A = GeluMulArgs;
  Operator<A> op;
  op.name = "gelu_mul";
  op.operands = {{"y", &A::y, kOut, kActivations, "rows inner", {kF32, kBF16}},
                 {"gate", &A::gate, kIn, kActivations, "rows inner", {}, false, "y"},
                 {"up", &A::up, kIn, kActivations, "rows inner", {}, false, "y"}};
  // Exponential, sum, quotient and two products are counted as 5.
  op.flops = [](const Dims& d) { return 5 * d["rows"] * d["inner"]; };
  op.reference = gelu_mul_reference;
  op.case_dims = "rows inner";
  op.cases = {{{0, 8}},
              {{1, 1}},
              {{3, 7}},
              {{2, 46}},
              {{5, 1536}},
              {{2, 16},
               0,
               [](A& a) {
                 const float x[] = {-1e30f, -200,   -90, -88, -87, -20, -1,  -1e-30f,
                                    0,      1e-30f, 1,   20,  88,  90,  200, 1e30f};
                 for (int64_t i = 0; i < 16; ++i) a.gate.set(x[i], 1, i);
               },
               "extremes"},
              {{1, 14336}, kBench},
              {{64, 14336}, kBench},
              {{512, 1536}, kBench}};
  op.tolerance = {[](const Judged<A>& j, Tensor A::*out, int64_t r, int64_t i, int64_t, int64_t) {
    // The sigmoid's argument s is off by 4 roundings, and d ln(sigmoid) / ds <= 1: relative error 4 |s| u.
    const double g = j.inputs.gate.f64(r, i), u = std::fabs(j.inputs.up.f64(r, i));
    // Where the exponential leaves f32's range the sigmoid is 0 instead of less than 2^-125.
    return (10 + 4 * std::fabs(1.5957691216 * (g + 0.044715 * g * g * g))) * 0x1p-24 *
               std::fabs((j.reference.*out).f64(r, i)) +
           0x1p-125 * std::fabs(g) * u;
  }};
  return op;
}

Status gelu_mul(Stream& stream, const GeluMulArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
