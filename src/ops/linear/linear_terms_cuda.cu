// Weights in rows16, and plain ones of 16 bits with what linear_cuda.cu declines. Limit: read bandwidth of w
// for few tokens, the matrix instruction for many. kernels/linear_terms.cuh.

#include "ops/linear/linear.h"
#include "ops/linear_terms_call.cuh"

namespace ridge::cuda {

namespace {

template <DType dtype>
Decline declines_terms(const LinearArgs& a) {
  constexpr int64_t kMostRows = 65535 * 32;
  if (a.w.dtype != dtype)
    return decline("w is ", dtype_name(a.w.dtype), ", this kernel takes ", dtype_name(dtype));
  if (a.x.dtype == kI8) return decline("x is i8, this kernel takes f32 and bf16");
  if (a.w.dim(0) > kMostRows) return decline("out is ", a.w.dim(0), ", needs at most ", kMostRows);
  if (reinterpret_cast<uintptr_t>(a.w.data) % 16 != 0) return decline("w is not aligned to 16 bytes");
  if constexpr (is_block_quantized(dtype)) {
    if (a.w.layout != rows16::layout(dtype))
      return decline("w is not in rows16: pack it with the operator's pack_rows");
  } else {
    if (a.w.layout != nullptr) return decline("w is packed for the CPU: keep the file's layout");
    if (a.w.dim(1) % 8 != 0) return decline("in is ", a.w.dim(1), ", needs a multiple of 8");
    if (Decline no = aligned_rows({{"w", &a.w}})) return no;
  }
  return dense_rows({{"y", &a.y}, {"x", &a.x}, {"bias", &a.bias}, {"residual", &a.residual}});
}

template <DType dtype>
LinearTermsCall terms_call(const LinearArgs& a, void* workspace) {
  LinearTermsCall call = terms_call_of<dtype>(a.x, a.w, ceil_div(a.w.dim(0), int64_t{32}), workspace);
  call.matrices[0] = terms_part(a.y, a.w, a.bias);
  if (a.residual) call.residual = a.residual.as<const float>(), call.residual_stride = a.residual.stride(0);
  return call;
}

template <DType dtype>
Status run_terms(Stream& stream, const LinearArgs& a) {
  if (a.y.elements() == 0) return {};
  return launch_linear_terms<dtype>(as_cuda(stream).native(), terms_call<dtype>(a, stream.workspace()),
                                    as_cuda(stream).multiprocessors());
}

int64_t terms_workspace(const LinearArgs& a) {
  return terms_workspace_bytes(a.x);
}

/// A term of x is a column; f16 weights are two terms of bf16.
template <DType dtype>
int64_t terms_flops(const LinearArgs& a) {
  return 2 * a.x.dim(0) * a.w.dim(0) * a.w.dim(1) * terms_of(a.x) * (dtype == kF16 ? 2 : 1);
}

template <DType dtype>
void add(Kernels<LinearArgs>& kernels, const char* name) {
  Kernel<LinearArgs> kernel;
  kernel.name = name, kernel.declines = declines_terms<dtype>, kernel.run = run_terms<dtype>;
  kernel.workspace = terms_workspace;
  kernel.engine = Engine::kBf16, kernel.executed_flops = terms_flops<dtype>;
  kernels.add(std::move(kernel));
}

}  // namespace

void linear_terms_cuda(Kernels<LinearArgs>& kernels) {
  add<kBF16>(kernels, "linear_terms_bf16");
  add<kF16>(kernels, "linear_terms_f16");
  add<kQ8_0>(kernels, "linear_terms_q8_0");
  add<kQ4_0>(kernels, "linear_terms_q4_0");
  add<kQ4_1>(kernels, "linear_terms_q4_1");
  add<kQ5_0>(kernels, "linear_terms_q5_0");
  add<kQ4_K>(kernels, "linear_terms_q4_k");
  add<kQ6_K>(kernels, "linear_terms_q6_k");
}

}  // namespace ridge::cuda
