#pragma once
// What silu_mul and gelu_mul have in common: y = activation(gate) * up, element by element.

#include "ops/operator.h"

namespace ridge {

/// The description but for the activation. `sigmoid_error(gate)`: units in the last place by which the
/// rounding of the sigmoid's argument moves the result.
template <class A>
Operator<A> describe_gated(const char* name, void (*reference)(const A&), double (*sigmoid_error)(double)) {
  Operator<A> op;
  op.name = name;
  op.operands = {{"y", &A::y, kOut, kActivations, "rows inner", {kF32, kBF16}},
                 {"gate", &A::gate, kIn, kActivations, "rows inner", {}, false, "y"},
                 {"up", &A::up, kIn, kActivations, "rows inner", {}, false, "y"}};
  // Exponential, sum, quotient and two products are counted as 5.
  op.flops = [](const Dims& d) { return 5 * d["rows"] * d["inner"]; };
  op.reference = reference;
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
  op.pace = {{{1, 1024}}, {{32, 1024}}};
  op.tolerance = {
      [sigmoid_error](const Judged<A>& j, Tensor A::*out, int64_t r, int64_t i, int64_t, int64_t) {
        const double g = j.inputs.gate.f64(r, i), u = std::fabs(j.inputs.up.f64(r, i));
        // Where the exponential leaves f32's range the sigmoid is 0 instead of less than 2^-125.
        return (10 + sigmoid_error(g)) * 0x1p-24 * std::fabs((j.reference.*out).f64(r, i)) +
               0x1p-125 * std::fabs(g) * u;
      }};
  return op;
}

}  // namespace ridge
