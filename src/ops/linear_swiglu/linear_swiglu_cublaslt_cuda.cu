// Plain 16-bit weights and many tokens. Limit: the matrix instruction. Before the kernels of
// linear_swiglu_cuda.cu, which take what this declines.

#include "ops/linear_gated_cublaslt.cuh"
#include "ops/linear_swiglu/linear_swiglu.h"

namespace ridge::cuda {

void linear_swiglu_cublaslt_cuda(Kernels<LinearSwigluArgs>& kernels) {
  add_linear_gated_cublaslt<Gate::kSilu>(kernels);
}

}  // namespace ridge::cuda
