#include "ops/silu_mul/silu_mul.h"

#include "ops/gated.h"

namespace ridge {

void silu_mul_reference(const SiluMulArgs& a);

Operator<SiluMulArgs> describe_silu_mul() {
  return describe_gated<SiluMulArgs>("silu_mul", silu_mul_reference,
                                     [](double g) { return 2 * std::fabs(g); });
}

Status silu_mul(Stream& stream, const SiluMulArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
