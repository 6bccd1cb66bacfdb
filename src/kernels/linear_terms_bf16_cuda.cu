#include "kernels/linear_terms.cuh"
#include "kernels/plain_panel.cuh"

namespace ridge::cuda {

template <>
Status launch_linear_terms<kBF16>(cudaStream_t stream, const LinearTermsCall& call, int sms) {
  return launch_panels<PlainPanel<bf16>>(stream, call, sms);
}

}  // namespace ridge::cuda
