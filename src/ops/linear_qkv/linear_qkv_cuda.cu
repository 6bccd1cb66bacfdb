// The rows of three matrices in one grid of linear_terms.

#include "ops/linear_qkv/linear_qkv.h"
#include "ops/linear_terms_call.cuh"

namespace ridge::cuda {

namespace {

Decline declines(const LinearQkvArgs& a) {
  constexpr int64_t kMostRows = 65532 * 32;
  if (a.w_q.layout != a.w_k.layout || a.w_q.layout != a.w_v.layout)
    return decline("w_q, w_k and w_v differ in layout");
  if (a.w_q.dim(0) + a.w_k.dim(0) + a.w_v.dim(0) > kMostRows)
    return decline("q_out + k_out + v_out is more than ", kMostRows);
  if (Decline no = declines_terms_weights(a.w_q)) return no;
  if (Decline no = aligned_rows({{"w_q", &a.w_q}, {"w_k", &a.w_k}, {"w_v", &a.w_v}})) return no;
  return dense_rows({{"q", &a.q},
                     {"k", &a.k},
                     {"v", &a.v},
                     {"x", &a.x},
                     {"bias_q", &a.bias_q},
                     {"bias_k", &a.bias_k},
                     {"bias_v", &a.bias_v}});
}

Status run(Stream& stream, const LinearQkvArgs& a) {
  if (a.q.elements() + a.k.elements() + a.v.elements() == 0) return {};
  return with_terms_dtype(a.w_q, [&]<DType dtype>() {
    const int64_t rows = a.w_q.dim(0) + a.w_k.dim(0) + a.w_v.dim(0);
    LinearTermsCall call = terms_call_of<dtype>(a.x, a.w_q, ceil_div(rows, int64_t{32}), stream.workspace());
    call.matrices[0] = terms_part(a.q, a.w_q, a.bias_q), call.matrices[1] = terms_part(a.k, a.w_k, a.bias_k);
    call.matrices[2] = terms_part(a.v, a.w_v, a.bias_v), call.count = 3;
    return launch_linear_terms<dtype>(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors());
  });
}

}  // namespace

void linear_qkv_cuda(Kernels<LinearQkvArgs>& kernels) {
  Kernel<LinearQkvArgs> kernel;
  kernel.name = "linear_qkv_terms", kernel.declines = declines, kernel.run = run;
  kernel.workspace = [](const LinearQkvArgs& a) { return terms_workspace_bytes(a.x); };
  kernel.engine = Engine::kBf16;
  kernel.executed_flops = [](const LinearQkvArgs& a) {
    return 2 * a.x.dim(0) * a.x.dim(1) * (a.w_q.dim(0) + a.w_k.dim(0) + a.w_v.dim(0)) * terms_of(a.x);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
