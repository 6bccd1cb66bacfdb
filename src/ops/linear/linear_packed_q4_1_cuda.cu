// q4_1 weights in rows16. kernels/linear_packed.cuh; a file a type, so that none compiles long.

#include "ops/linear/linear_packed.cuh"

namespace ridge::cuda {

void linear_packed_q4_1_cuda(Kernels<LinearArgs>& kernels) {
  add_linear_packed<kQ4_1>(kernels, "linear_packed_q4_1");
}

}  // namespace ridge::cuda
