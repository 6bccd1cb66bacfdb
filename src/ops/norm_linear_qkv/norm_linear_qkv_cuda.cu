// The rows of three matrices in one grid of linear_terms, whose blocks normalize x themselves. Limit: the
// launch.

#include "ops/linear_terms_call.cuh"
#include "ops/norm_linear_qkv/norm_linear_qkv.h"

namespace ridge::cuda {

namespace {

int64_t pairs_of(const NormLinearQkvArgs& a) {
  return ceil_div(a.w_q.dim(0) + a.w_k.dim(0) + a.w_v.dim(0), int64_t{32});
}

Decline declines(const NormLinearQkvArgs& a) {
  if (a.w_q.layout != a.w_k.layout || a.w_q.layout != a.w_v.layout)
    return decline("w_q, w_k and w_v differ in layout");
  if (pairs_of(a) > 65532) return decline("q_out + k_out + v_out is more than ", int64_t{65532} * 32);
  if (Decline no = declines_normalized(a.x, a.norm, pairs_of(a))) return no;
  if (Decline no = declines_terms_weights(a.w_q)) return no;
  if (Decline no = aligned_rows({{"w_q", &a.w_q}, {"w_k", &a.w_k}, {"w_v", &a.w_v}})) return no;
  return dense_rows({{"q", &a.q},
                     {"k", &a.k},
                     {"v", &a.v},
                     {"bias_q", &a.bias_q},
                     {"bias_k", &a.bias_k},
                     {"bias_v", &a.bias_v}});
}

Status run(Stream& stream, const NormLinearQkvArgs& a) {
  if (a.q.elements() + a.k.elements() + a.v.elements() == 0) return {};
  return with_terms_dtype(a.w_q, [&]<DType dtype>() {
    LinearTermsCall call = terms_call_of<dtype>(a.x, a.w_q, pairs_of(a), stream.workspace());
    call.matrices[0] = terms_part(a.q, a.w_q, a.bias_q), call.matrices[1] = terms_part(a.k, a.w_k, a.bias_k);
    call.matrices[2] = terms_part(a.v, a.w_v, a.bias_v), call.count = 3;
    call.norm = a.norm.as<const float>(), call.norm_epsilon = a.epsilon, call.norm_offset = a.weight_offset;
    return launch_linear_terms<dtype>(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors());
  });
}

}  // namespace

void norm_linear_qkv_cuda(Kernels<NormLinearQkvArgs>& kernels) {
  Kernel<NormLinearQkvArgs> kernel;
  kernel.name = "norm_linear_qkv_terms", kernel.declines = declines, kernel.run = run;
  kernel.engine = Engine::kBf16;
  kernel.executed_flops = [](const NormLinearQkvArgs& a) {
    return a.x.dim(0) * a.x.dim(1) * (2 * (a.w_q.dim(0) + a.w_k.dim(0) + a.w_v.dim(0)) * terms_of(a.x) + 4);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
