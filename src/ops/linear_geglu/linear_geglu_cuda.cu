// bf16 weights. Limit: read bandwidth of both matrices up to 64 tokens. What this declines:
// linear_geglu_terms_cuda.cu.

#include "ops/linear_gated_dense.cuh"
#include "ops/linear_geglu/linear_geglu.h"

namespace ridge::cuda {

void linear_geglu_cuda(Kernels<LinearGegluArgs>& kernels) {
  add_linear_gated_dense<Gate::kGelu>(kernels);
}

}  // namespace ridge::cuda
