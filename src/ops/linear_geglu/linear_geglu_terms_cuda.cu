// A tile of the gate and one of the other matrix are a pair of linear_terms: what joins them sees both.

#include "ops/linear_gated.cuh"
#include "ops/linear_geglu/linear_geglu.h"

namespace ridge::cuda {

void linear_geglu_terms_cuda(Kernels<LinearGegluArgs>& kernels) {
  add_linear_gated<Gate::kGelu>(kernels);
}

}  // namespace ridge::cuda
