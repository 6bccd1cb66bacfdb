#include "kernels/rowwise/gated.h"
#include "ops/gelu_mul/gelu_mul.h"

namespace ridge::RIDGE_ISA {

namespace {
struct Activation {
  simd::F32 operator()(simd::F32 x) const {
    return x *
           simd::sigmoid(simd::fma(x * x, simd::set1(0.0713548162726f), simd::set1(1.5957691216057f)) * x);
  }
};
}  // namespace

void gelu_mul_cpu(Kernels<GeluMulArgs>& kernels) {
  kernels.add("gelu_mul_by_row", gated_rows<GeluMulArgs>, gated<Activation, GeluMulArgs>);
}

}  // namespace ridge::RIDGE_ISA
