// Plain 16-bit weights and many tokens. Limit: the matrix instruction. Before the kernels of
// linear_geglu_cuda.cu, which take what this declines.

#include "ops/linear_gated_cublaslt.cuh"
#include "ops/linear_geglu/linear_geglu.h"

namespace ridge::cuda {

void linear_geglu_cublaslt_cuda(Kernels<LinearGegluArgs>& kernels) {
  add_linear_gated_cublaslt<Gate::kGelu>(kernels);
}

}  // namespace ridge::cuda
