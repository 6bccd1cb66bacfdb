#include "kernels/linear_terms.cuh"
#include "kernels/rows16_panel.cuh"

namespace ridge::cuda {

template <>
Status launch_linear_terms<kQ4_1>(cudaStream_t stream, const LinearTermsCall& call, int sms) {
  return launch_panels<PackedPanel<kQ4_1>>(stream, call, sms);
}

}  // namespace ridge::cuda
