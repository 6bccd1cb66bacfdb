// Plain 16-bit weights and many tokens, by cuBLASLt. Limit: the matrix instruction. Before the kernels of
// linear_cuda.cu, which take what this declines.

#include "ops/cublaslt_call.cuh"
#include "ops/linear/linear.h"

namespace ridge::cuda {

void linear_cublaslt_cuda(Kernels<LinearArgs>& kernels) {
  add_cublaslt(kernels);
}

}  // namespace ridge::cuda
