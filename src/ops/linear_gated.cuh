#pragma once
// linear_terms as a kernel of linear_swiglu and linear_geglu.

#include "ops/linear_gated.h"
#include "ops/linear_terms_call.cuh"

namespace ridge::cuda {

inline Decline declines_gated(const LinearGated& a) {
  constexpr int64_t kMostRows = 65535 * 16;
  if (a.w_gate.layout != a.w_up.layout) return decline("w_gate and w_up have different layouts");
  if (a.w_gate.dim(0) > kMostRows)
    return decline("inner is ", a.w_gate.dim(0), ", needs at most ", kMostRows);
  if (a.y.dtype != kF32) return decline("y is ", dtype_name(a.y.dtype), ", this kernel writes f32");
  if (Decline no = declines_terms_weights(a.w_gate)) return no;
  if (Decline no = aligned_rows({{"w_gate", &a.w_gate}, {"w_up", &a.w_up}})) return no;
  return dense_rows({{"y", &a.y}, {"x", &a.x}});
}

template <Gate gate, class A>
Status run_linear_gated(Stream& stream, const A& a) {
  if (a.y.elements() == 0) return {};
  return with_terms_dtype(a.w_gate, [&]<DType dtype>() {
    LinearTermsCall call =
        terms_call_of<dtype>(a.x, a.w_gate, ceil_div(a.w_gate.dim(0), int64_t{16}), stream.workspace());
    call.matrices[0] = terms_part(a.y, a.w_gate, {}), call.matrices[1] = terms_part({}, a.w_up, {});
    call.count = 2, call.gate = gate;
    return launch_linear_terms<dtype>(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors());
  });
}

template <Gate gate, class A>
void add_linear_gated(Kernels<A>& kernels) {
  Kernel<A> kernel;
  kernel.name = "linear_gated_terms", kernel.run = run_linear_gated<gate, A>;
  kernel.declines = [](const A& a) { return declines_gated(a); };
  kernel.workspace = [](const A& a) { return terms_workspace_bytes(a.x); };
  kernel.engine = Engine::kBf16;
  kernel.executed_flops = [](const A& a) {
    return 4 * a.x.dim(0) * a.w_gate.dim(0) * a.x.dim(1) * terms_of(a.x);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
