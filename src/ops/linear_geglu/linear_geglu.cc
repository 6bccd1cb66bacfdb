#include "ops/linear_geglu/linear_geglu.h"

namespace ridge {

namespace {

double geglu_activation(double g) {
  return g / (1 + std::exp(-1.5957691216057308 * (g + 0.044715 * g * g * g)));
}
void linear_geglu_reference(const LinearGegluArgs& a) {
  linear_gated_reference(a, geglu_activation);
}

}  // namespace

Operator<LinearGegluArgs> describe_linear_geglu() {
  constexpr double kSlope = 1.13;  // of the activation, at most
  return describe_linear_gated<LinearGegluArgs>("linear_geglu", "gelu_mul", linear_geglu_reference, kSlope);
}

Status linear_geglu(Stream& stream, const LinearGegluArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
