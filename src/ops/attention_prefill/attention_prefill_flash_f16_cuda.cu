// Limit: the matrix instruction. kernels/attention_flash.cuh; a file a type, so that none compiles long.

#include "ops/attention_prefill/attention_prefill_flash.cuh"

namespace ridge::cuda {

void attention_prefill_flash_f16_cuda(Kernels<AttentionPrefillArgs>& kernels) {
  add_flash<f16>(kernels, "attention_flash_f16");
}

}  // namespace ridge::cuda
