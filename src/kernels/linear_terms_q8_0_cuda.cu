#include "kernels/linear_terms.cuh"
#include "kernels/rows16_panel.cuh"

namespace ridge::cuda {

template <>
Status launch_linear_terms<kQ8_0>(cudaStream_t stream, const LinearTermsCall& call, int sms) {
  return launch_panels<PackedPanel<kQ8_0>>(stream, call, sms);
}

}  // namespace ridge::cuda
