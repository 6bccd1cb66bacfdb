#include "ops/gelu_mul/gelu_mul.h"

#include "ops/gated.h"

namespace ridge {

void gelu_mul_reference(const GeluMulArgs& a);

Operator<GeluMulArgs> describe_gelu_mul() {
  // The sigmoid's argument s is off by 4 roundings, and d ln(sigmoid) / ds <= 1: relative error 4 |s| u.
  return describe_gated<GeluMulArgs>("gelu_mul", gelu_mul_reference, [](double g) {
    return 4 * std::fabs(1.5957691216 * (g + 0.044715 * g * g * g));
  });
}

Status gelu_mul(Stream& stream, const GeluMulArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
