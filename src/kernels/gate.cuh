#pragma once
// What joins the two products of a gated linear: y = gate(x · wᵀ) · (x · w_upᵀ).

#include "kernels/linear_terms_call.cuh"
#include "kernels/rowwise.cuh"

namespace ridge::cuda {

template <Gate kGate>
__device__ __forceinline__ float gated(float gate, float up) {
  static_assert(kGate != Gate::kNone);
  return (kGate == Gate::kSilu ? Silu::of(gate) : GeluTanh::of(gate)) * up;
}

}  // namespace ridge::cuda
