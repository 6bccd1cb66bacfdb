// Limit: read bandwidth of K and V. kernels/attention_decode.cuh; a file a type, so that none compiles long.

#include "ops/attention_decode/attention_decode_split.cuh"

namespace ridge::cuda {

void attention_decode_bf16_cuda(Kernels<AttentionDecodeArgs>& kernels) {
  add_decode<bf16>(kernels, "attention_decode_split_bf16");
}

}  // namespace ridge::cuda
