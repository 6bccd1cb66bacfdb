#pragma once
// What every dense linear kernel of the GPU is given: y[tokens, out] = x[tokens, in] · w[out, in]ᵀ + bias +
// residual, or of two matrices y = gate(x · wᵀ) · (x · w_upᵀ). Kernels walk two matrices as one of their rows
// in turns, so that one block has both products of an output.

#include <cstdint>

#include "device/convert.cuh"
#include "device/launch.cuh"
#include "kernels/gate.cuh"

namespace ridge::cuda {

/// W: type of w; X: of x; Y: of y, bias and residual. Row starts of w and x are aligned to 16 bytes and `in`
/// is a multiple of 8, but for linear_elements.
template <class W, class X = W, class Y = W>
struct LinearCall {
  device::Fresh<Y> y;               // [tokens, out]
  device::Fresh<const X> x;         // [tokens, in]
  const W* w = nullptr;             // [out, in]; complete before the step, so it is read before the wait
  const W* w_up = nullptr;          // [out, in], with a gate; then neither bias nor residual
  const Y* bias = nullptr;          // [out] or none
  device::Fresh<const Y> residual;  // [tokens, out] or none; may be y
  int64_t tokens = 0, out = 0, in = 0;
  int64_t y_stride = 0, x_stride = 0, w_stride = 0, residual_stride = 0;  // elements between rows
};

/// What is left of an output once its products are summed; `added`: its residual.
template <class W, class X, class Y>
__device__ __forceinline__ void store_sum(const LinearCall<W, X, Y>& call, device::Waited waited,
                                          int64_t token, int64_t row, float sum, float added) {
  if (call.bias) sum += device::to_float(call.bias[row]);
  call.y.after(waited)[token * call.y_stride + row] = device::from_float<Y>(sum + added);
}
/// The same, with the residual fetched here.
template <class W, class X, class Y>
__device__ __forceinline__ void store_output(const LinearCall<W, X, Y>& call, device::Waited waited,
                                             int64_t token, int64_t row, float sum) {
  const Y* const residual = call.residual.after(waited);
  store_sum(call, waited, token, row, sum,
            residual ? device::to_float(residual[token * call.residual_stride + row]) : 0);
}
/// The same of both products of an output.
template <Gate kGate, class W, class X, class Y>
__device__ __forceinline__ void store_gated(const LinearCall<W, X, Y>& call, device::Waited waited,
                                            int64_t token, int64_t row, float gate, float up) {
  call.y.after(waited)[token * call.y_stride + row] = device::from_float<Y>(gated<kGate>(gate, up));
}

}  // namespace ridge::cuda
