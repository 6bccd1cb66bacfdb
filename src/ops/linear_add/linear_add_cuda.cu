// Limit: as linear's; at one token of a small model the launch of the add that it saves. linear's own
// kernels: bf16 weights and x by gemm_stream and gemm_wgmma, weights in rows16 by linear_terms.

#include "kernels/linear_choice.cuh"
#include "ops/linear_add/linear_add.h"
#include "ops/linear_terms_call.cuh"

namespace ridge::cuda {

namespace {

Decline declines_dense(const LinearAddArgs& a) {
  if (a.x.dtype != kBF16 || a.w.dtype != kBF16 || a.w.layout != nullptr)
    return decline("x is ", dtype_name(a.x.dtype), " and w is ", dtype_name(a.w.dtype),
                   ": this kernel takes bf16 both, as in the file");
  if (a.x.dim(0) == 1) return decline("tokens is 1: linear has a faster kernel for it");
  if (a.w.dim(1) % 8 != 0) return decline("in is ", a.w.dim(1), ", needs a multiple of 8");
  if (Decline no = dense_rows({{"y", &a.y}, {"bias", &a.bias}, {"residual", &a.residual}})) return no;
  return aligned_rows({{"x", &a.x}, {"w", &a.w}});
}
Decline declines_few(const LinearAddArgs& a) {
  if (a.x.dim(0) > 8) return decline("tokens is ", a.x.dim(0), ", needs at most 8");
  if (a.w.dim(1) > kFewTokensWidth) return decline("in is ", a.w.dim(1), ", needs at most ", kFewTokensWidth);
  return declines_dense(a);
}

LinearCall<bf16, bf16, float> dense_call(const LinearAddArgs& a) {
  LinearCall<bf16, bf16, float> call;
  call.y = a.y.as<float>(), call.x = a.x.as<const bf16>(), call.w = a.w.as<bf16>();
  if (a.bias) call.bias = a.bias.as<const float>();
  call.residual = a.residual.as<const float>(), call.residual_stride = a.residual.stride(0);
  call.tokens = a.x.dim(0), call.out = a.w.dim(0), call.in = a.w.dim(1);
  call.y_stride = a.y.stride(0), call.x_stride = a.x.stride(0), call.w_stride = a.w.stride(0);
  return call;
}
Status run_few(Stream& stream, const LinearAddArgs& a) {
  if (a.y.elements() == 0) return {};
  return launch_few_tokens(as_cuda(stream).native(), dense_call(a), as_cuda(stream).multiprocessors());
}
Status run_many(Stream& stream, const LinearAddArgs& a) {
  if (a.y.elements() == 0) return {};
  return launch_many_tokens(as_cuda(stream).native(), dense_call(a), as_cuda(stream).multiprocessors());
}

Decline declines(const LinearAddArgs& a) {
  constexpr int64_t kMostRows = 65535 * 32;
  if (!is_block_quantized(a.w.dtype))
    return decline("w is ", dtype_name(a.w.dtype), ", this kernel takes block-quantized types");
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
  kernels.add("gemm_stream_add", declines_few, run_few, Engine::kBf16);
  kernels.add("gemm_wgmma_add", declines_dense, run_many, Engine::kBf16);
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
