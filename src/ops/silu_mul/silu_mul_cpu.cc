#include "kernels/rowwise/gated.h"
#include "ops/silu_mul/silu_mul.h"

namespace ridge::RIDGE_ISA {

namespace {
struct Activation {
  simd::F32 operator()(simd::F32 x) const { return x * simd::sigmoid(x); }
};
}  // namespace

void silu_mul_cpu(Kernels<SiluMulArgs>& kernels) {
  kernels.add("silu_mul_by_row", gated_rows<SiluMulArgs>, gated<Activation, SiluMulArgs>);
}

}  // namespace ridge::RIDGE_ISA
