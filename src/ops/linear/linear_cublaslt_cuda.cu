// Plain 16-bit weights and many tokens, by cuBLASLt. Limit: the matrix instruction. Before the kernels of
// linear_cuda.cu, which take what this declines.

#include "ops/cublaslt_call.cuh"
#include "ops/linear/linear.h"

namespace ridge::cuda {

namespace {

CublasLtCall call_of(const LinearArgs& a) {
  return {a.y, a.x, a.w, a.bias, a.residual};
}

Status run(Stream& stream, const LinearArgs& a) {
  return run_cublaslt(stream, call_of(a), stream.workspace());
}

}  // namespace

void linear_cublaslt_cuda(Kernels<LinearArgs>& kernels) {
  Kernel<LinearArgs> kernel;
  kernel.name = "cublaslt", kernel.run = run, kernel.engine = Engine::kBf16;
  kernel.declines = [](const LinearArgs& a) { return declines_cublaslt(call_of(a)); };
  kernel.workspace = [](const LinearArgs& a) { return cublaslt_workspace(call_of(a)); };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
