// A tile of the gate and one of the other matrix are a pair of linear_terms, whose blocks normalize x
// themselves. Limit: the launch.

#include "ops/linear_terms_call.cuh"
#include "ops/norm_linear_swiglu/norm_linear_swiglu.h"

namespace ridge::cuda {

namespace {

int64_t pairs_of(const NormLinearSwigluArgs& a) {
  return ceil_div(a.w_gate.dim(0), int64_t{16});
}

Decline declines(const NormLinearSwigluArgs& a) {
  if (a.w_gate.layout != a.w_up.layout) return decline("w_gate and w_up have different layouts");
  if (pairs_of(a) > 65535) return decline("inner is ", a.w_gate.dim(0), ", needs at most ", 65535 * 16);
  if (Decline no = declines_normalized(a.x, a.norm, pairs_of(a))) return no;
  if (Decline no = declines_terms_weights(a.w_gate)) return no;
  if (Decline no = aligned_rows({{"w_gate", &a.w_gate}, {"w_up", &a.w_up}})) return no;
  return dense_rows({{"y", &a.y}});
}

Status run(Stream& stream, const NormLinearSwigluArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_terms_dtype(a.w_gate, [&]<DType dtype>() {
    LinearTermsCall call = terms_call_of<dtype>(a.x, a.w_gate, pairs_of(a), stream.workspace());
    call.matrices[0] = terms_part(a.y, a.w_gate, {}), call.matrices[1] = terms_part({}, a.w_up, {});
    call.count = 2, call.gate = Gate::kSilu;
    call.norm = a.norm.as<const float>(), call.norm_epsilon = a.epsilon, call.norm_offset = a.weight_offset;
    return launch_linear_terms<dtype>(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors());
  });
}

}  // namespace

void norm_linear_swiglu_cuda(Kernels<NormLinearSwigluArgs>& kernels) {
  Kernel<NormLinearSwigluArgs> kernel;
  kernel.name = "norm_linear_gated_terms", kernel.declines = declines, kernel.run = run;
  kernel.engine = Engine::kBf16;
  kernel.executed_flops = [](const NormLinearSwigluArgs& a) {
    return a.x.dim(0) * a.x.dim(1) * (4 * a.w_gate.dim(0) * terms_of(a.x) + 4);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
