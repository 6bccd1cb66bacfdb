// bf16 weights and many tokens, by cuBLASLt: the residual is its C. Before the kernels of linear_add_cuda.cu,
// which take what this declines.

#include "ops/cublaslt_call.cuh"
#include "ops/linear_add/linear_add.h"

namespace ridge::cuda {

void linear_add_cublaslt_cuda(Kernels<LinearAddArgs>& kernels) {
  add_cublaslt(kernels);
}

}  // namespace ridge::cuda
