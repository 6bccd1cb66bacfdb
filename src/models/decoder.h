#pragma once
// The decoder that Llama and its kin share: RMSNorm, rotary GQA attention, SwiGLU, one kind of layer.

#include "models/model.h"

namespace ridge {

struct DecoderTraits {
  bool qk_norm = false;      // each head of q and k is normalised before it is turned
  bool interleaved = false;  // rotary pairs are neighbours; else halves of a head
};

/// Errors: those of the configuration, and of each tensor that is missing or has another shape.
Result<std::unique_ptr<Model>> load_decoder(std::unique_ptr<WeightStore> weights,
                                            const DecoderTraits& traits);

}  // namespace ridge
