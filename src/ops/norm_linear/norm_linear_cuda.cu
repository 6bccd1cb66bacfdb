// linear_terms whose blocks normalize x themselves. Limit: the launch.

#include "ops/linear_terms_call.cuh"
#include "ops/norm_linear/norm_linear.h"

namespace ridge::cuda {

namespace {

int64_t pairs_of(const NormLinearArgs& a) {
  return ceil_div(a.w.dim(0), int64_t{32});
}

Decline declines(const NormLinearArgs& a) {
  if (pairs_of(a) > 65535) return decline("out is ", a.w.dim(0), ", needs at most ", int64_t{65535} * 32);
  if (Decline no = declines_normalized(a.x, a.norm, pairs_of(a))) return no;
  if (Decline no = declines_terms_weights(a.w)) return no;
  if (Decline no = aligned_rows({{"w", &a.w}})) return no;
  return dense_rows({{"y", &a.y}, {"bias", &a.bias}});
}

Status run(Stream& stream, const NormLinearArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_terms_dtype(a.w, [&]<DType dtype>() {
    LinearTermsCall call = terms_call_of<dtype>(a.x, a.w, pairs_of(a), stream.workspace());
    call.matrices[0] = terms_part(a.y, a.w, a.bias);
    call.norm = a.norm.as<const float>(), call.norm_epsilon = a.epsilon, call.norm_offset = a.weight_offset;
    return launch_linear_terms<dtype>(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors());
  });
}

}  // namespace

void norm_linear_cuda(Kernels<NormLinearArgs>& kernels) {
  Kernel<NormLinearArgs> kernel;
  kernel.name = "norm_linear_terms", kernel.declines = declines, kernel.run = run;
  kernel.engine = Engine::kBf16;
  kernel.executed_flops = [](const NormLinearArgs& a) {
    return a.x.dim(0) * a.x.dim(1) * (2 * a.w.dim(0) * terms_of(a.x) + 4);
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
