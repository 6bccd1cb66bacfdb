// Qwen3, dense: Llama's decoder with a norm of each query and key head. Source: Qwen Team 2025, "Qwen3
// technical report". The GGUF form keeps Q and K rows in half-split order.

#include "models/decoder.h"

namespace ridge {

Result<std::unique_ptr<Model>> load_qwen3(std::unique_ptr<WeightStore> weights) {
  DecoderTraits traits;
  traits.qk_norm = true;
  return load_decoder(std::move(weights), traits);
}

}  // namespace ridge
