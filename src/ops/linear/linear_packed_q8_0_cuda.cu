// q8_0 weights in rows16. kernels/linear_packed.cuh; a file a type, so that none compiles long.

#include "ops/linear/linear_packed.cuh"

namespace ridge::cuda {

void linear_packed_q8_0_cuda(Kernels<LinearArgs>& kernels) {
  add_linear_packed<kQ8_0>(kernels, "linear_packed_q8_0");
}

}  // namespace ridge::cuda
