// bf16 weights and many tokens, by cuBLASLt: the residual is its C. Before the kernels of linear_add_cuda.cu,
// which take what this declines.

#include "ops/cublaslt_call.cuh"
#include "ops/linear_add/linear_add.h"

namespace ridge::cuda {

namespace {

CublasLtCall call_of(const LinearAddArgs& a) {
  return {a.y, a.x, a.w, a.bias, a.residual};
}

Status run(Stream& stream, const LinearAddArgs& a) {
  return run_cublaslt(stream, call_of(a), stream.workspace());
}

}  // namespace

void linear_add_cublaslt_cuda(Kernels<LinearAddArgs>& kernels) {
  Kernel<LinearAddArgs> kernel;
  kernel.name = "cublaslt", kernel.run = run, kernel.engine = Engine::kBf16;
  kernel.declines = [](const LinearAddArgs& a) { return declines_cublaslt(call_of(a)); };
  kernel.workspace = [](const LinearAddArgs& a) { return cublaslt_workspace(call_of(a)); };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
