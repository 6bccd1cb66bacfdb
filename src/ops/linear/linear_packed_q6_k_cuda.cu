// q6_k weights in rows16. kernels/linear_packed.cuh; a file a type, so that none compiles long.

#include "ops/linear/linear_packed.cuh"

namespace ridge::cuda {

void linear_packed_q6_k_cuda(Kernels<LinearArgs>& kernels) {
  add_linear_packed<kQ6_K>(kernels, "linear_packed_q6_k");
}

}  // namespace ridge::cuda
