#pragma once
// bf16 weights as a kernel of linear_swiglu and linear_geglu, at the speed of linear's own: rows of both
// matrices go through one stream in turns, and what adds an output's parts has both of its products.

#include "kernels/linear_choice.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/linear_gated.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

inline Decline declines_gated_dense(const LinearGated& a) {
  if (a.w_gate.dtype != kBF16 || a.w_gate.layout != nullptr)
    return decline("w_gate is ", dtype_name(a.w_gate.dtype), ": this kernel takes bf16 as in the file");
  if (a.w_gate.dim(1) % 8 != 0) return decline("in is ", a.w_gate.dim(1), ", needs a multiple of 8");
  if (a.w_gate.stride(0) != a.w_up.stride(0)) return decline("w_gate and w_up have different strides");
  if (Decline no = dense_rows({{"y", &a.y}})) return no;
  return aligned_rows({{"x", &a.x}, {"w_gate", &a.w_gate}, {"w_up", &a.w_up}});
}
inline Decline declines_gated_one(const LinearGated& a) {
  if (a.x.dim(0) > 1) return decline("tokens is ", a.x.dim(0), ", needs 1");
  if (a.x.dim(1) > kOneGatedWidth || a.w_gate.dim(0) > kOneGatedRows)
    return decline("in is ", a.x.dim(1), " and inner ", a.w_gate.dim(0), ", needs at most ", kOneGatedWidth,
                   " and ", kOneGatedRows);
  return declines_gated_dense(a);
}
inline Decline declines_gated_matrix(const LinearGated& a) {
  if (a.x.dtype != kBF16)
    return decline("x is ", dtype_name(a.x.dtype), ": the matrix instruction needs bf16");
  return declines_gated_dense(a);
}
inline Decline declines_gated_few(const LinearGated& a) {
  if (a.x.dim(0) > 8) return decline("tokens is ", a.x.dim(0), ", needs at most 8");
  if (a.x.dim(1) > kFewTokensWidth) return decline("in is ", a.x.dim(1), ", needs at most ", kFewTokensWidth);
  return declines_gated_matrix(a);
}

template <class X, class Y>
LinearCall<bf16, X, Y> gated_call(const LinearGated& a) {
  LinearCall<bf16, X, Y> call;
  call.y = a.y.as<Y>(), call.x = a.x.as<const X>(), call.w = a.w_gate.as<bf16>(),
  call.w_up = a.w_up.as<bf16>();
  call.tokens = a.x.dim(0), call.out = a.w_gate.dim(0), call.in = a.w_gate.dim(1);
  call.y_stride = a.y.stride(0), call.x_stride = a.x.stride(0), call.w_stride = a.w_gate.stride(0);
  return call;
}

template <Gate kGate, class A>
Status run_gated_one(Stream& stream, const A& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
    return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
      return launch_one_token<kGate>(as_cuda(stream).native(), gated_call<X, Y>(a),
                                     as_cuda(stream).multiprocessors());
    });
  });
}
template <Gate kGate, class A>
Status run_gated_few(Stream& stream, const A& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
    return launch_few_tokens<kGate>(as_cuda(stream).native(), gated_call<bf16, Y>(a),
                                    as_cuda(stream).multiprocessors());
  });
}
template <Gate kGate, class A>
Status run_gated_many(Stream& stream, const A& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
    return launch_many_tokens<kGate>(as_cuda(stream).native(), gated_call<bf16, Y>(a),
                                     as_cuda(stream).multiprocessors());
  });
}

template <Gate kGate, class A>
void add_linear_gated_dense(Kernels<A>& kernels) {
  kernels.add(
      "gemv_stream_gated", [](const A& a) { return declines_gated_one(a); }, run_gated_one<kGate, A>);
  kernels.add(
      "gemm_stream_gated", [](const A& a) { return declines_gated_few(a); }, run_gated_few<kGate, A>,
      Engine::kBf16);
  kernels.add(
      "gemm_wgmma_gated", [](const A& a) { return declines_gated_matrix(a); }, run_gated_many<kGate, A>,
      Engine::kBf16);
}

}  // namespace ridge::cuda
