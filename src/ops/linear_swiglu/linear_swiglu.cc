#include "ops/linear_swiglu/linear_swiglu.h"

namespace ridge {

namespace {

double swiglu_activation(double g) {
  return g / (1 + std::exp(-g));
}
void linear_swiglu_reference(const LinearSwigluArgs& a) {
  linear_gated_reference(a, swiglu_activation);
}

}  // namespace

Operator<LinearSwigluArgs> describe_linear_swiglu() {
  constexpr double kSlope = 1.1;  // of the activation, at most
  return describe_linear_gated<LinearSwigluArgs>("linear_swiglu", "silu_mul", linear_swiglu_reference,
                                                 kSlope);
}

Status linear_swiglu(Stream& stream, const LinearSwigluArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
