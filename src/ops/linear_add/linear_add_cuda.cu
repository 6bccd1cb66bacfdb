// Weights in rows16. Limit: as linear's; at one token of a small model the launch of the add that it saves.

#include "ops/linear_add/linear_add.h"
#include "ops/linear_terms_call.cuh"

namespace ridge::cuda {

namespace {

Decline declines(const LinearAddArgs& a) {
  constexpr int64_t kMostRows = 65535 * 32;
  if (a.w.dim(0) > kMostRows) return decline("out is ", a.w.dim(0), ", needs at most ", kMostRows);
  if (Decline no = declines_terms_weights(a.w)) return no;
  if (Decline no = aligned_rows({{"w", &a.w}})) return no;
  return dense_rows({{"y", &a.y}, {"x", &a.x}, {"bias", &a.bias}, {"residual", &a.residual}});
}

Status run(Stream& stream, const LinearAddArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_terms_dtype(a.w, [&]<DType dtype>() {
    LinearTermsCall call =
        terms_call_of<dtype>(a.x, a.w, ceil_div(a.w.dim(0), int64_t{32}), stream.workspace());
    call.matrices[0] = terms_part(a.y, a.w, a.bias);
    call.residual = a.residual.as<const float>(), call.residual_stride = a.residual.stride(0);
    return launch_linear_terms<dtype>(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors());
  });
}

}  // namespace

void linear_add_cuda(Kernels<LinearAddArgs>& kernels) {
  Kernel<LinearAddArgs> kernel;
  kernel.name = "linear_add_terms", kernel.declines = declines, kernel.run = run;
  kernel.workspace = [](const LinearAddArgs& a) { return terms_workspace_bytes(a.x); };
  kernel.engine = Engine::kBf16;
  kernel.executed_flops = [](const LinearAddArgs& a) {
    return 2 * a.x.dim(0) * a.x.dim(1) * a.w.dim(0) * terms_of(a.x);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
