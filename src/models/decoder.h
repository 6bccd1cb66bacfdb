#pragma once
// The decoder that Llama and its kin share: RMSNorm, rotary GQA attention, SwiGLU, one kind of layer.

#include "models/model.h"

namespace ridge {

struct DecoderTraits {
  bool qk_norm = false;      // each head of q and k is normalised before it is turned
  bool interleaved = false;  // rotary pairs are neighbours; else halves of a head
};

// What every decoder here has, whatever its layers do with it.
struct DecoderEnds {
  Tensor embedding, norm,
      head;  // [vocab, hidden], [hidden], [vocab, hidden]: the embedding's where it is tied
};
struct DecoderLayer {
  Tensor attention_norm, o, mlp_norm,
      down;             // [hidden], [hidden, heads * head_dim], [hidden], [hidden, inner]
  MatrixGroup gate_up;  // of [inner, hidden]
};
Result<DecoderEnds> load_ends(WeightStore& w, const DecoderConfig& c);
Status load_decoder_layer(WeightStore& w, const DecoderConfig& c, int64_t index, DecoderLayer* layer);

/// Errors: those of the configuration, and of each tensor that is missing or has another shape.
Result<std::unique_ptr<Model>> load_decoder(std::unique_ptr<WeightStore> weights,
                                            const DecoderTraits& traits);

}  // namespace ridge
