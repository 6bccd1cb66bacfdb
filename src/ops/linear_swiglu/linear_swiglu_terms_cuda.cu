// A tile of the gate and one of the other matrix are a pair of linear_terms: what joins them sees both.

#include "ops/linear_gated.cuh"
#include "ops/linear_swiglu/linear_swiglu.h"

namespace ridge::cuda {

void linear_swiglu_terms_cuda(Kernels<LinearSwigluArgs>& kernels) {
  add_linear_gated<Gate::kSilu>(kernels);
}

}  // namespace ridge::cuda
