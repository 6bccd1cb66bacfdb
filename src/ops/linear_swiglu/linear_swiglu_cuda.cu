// bf16 weights. Limit: read bandwidth of both matrices up to 64 tokens. What this declines:
// linear_swiglu_terms_cuda.cu.

#include "ops/linear_gated_dense.cuh"
#include "ops/linear_swiglu/linear_swiglu.h"

namespace ridge::cuda {

void linear_swiglu_cuda(Kernels<LinearSwigluArgs>& kernels) {
  add_linear_gated_dense<Gate::kSilu>(kernels);
}

}  // namespace ridge::cuda
