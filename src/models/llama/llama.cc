// Llama: RMSNorm, rotary GQA attention, SwiGLU. Source: Touvron et al. 2023; the GGUF form stores Q and K
// rows so that rotary pairs are neighbours (interleaved).

#include "models/decoder.h"

namespace ridge {

Result<std::unique_ptr<Model>> load_llama(std::unique_ptr<WeightStore> weights) {
  DecoderTraits traits;
  traits.interleaved = true;
  return load_decoder(std::move(weights), traits);
}

}  // namespace ridge
