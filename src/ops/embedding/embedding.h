#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct EmbeddingArgs {
  Tensor y;    // out [tokens, hidden] f32
  Tensor ids;  // in  [tokens] i32, i64
  Tensor w;    // in  [vocab, hidden] f32, f16, bf16, q8_0 … q6_k; as in the file, or packed for linear
  float scale = 1.0f;  // sqrt(hidden) in Gemma
};
/// y[t, h] = w[ids[t], h] * scale. The table may be the packed one of a tied output layer, which then exists
/// once. On the CPU an id outside [0, vocab) is kInvalidArgument before anything is written, naming position,
/// id and vocab; on a GPU, which the host does not wait for, its row is NaN. Errors else: kInvalidArgument,
/// naming operand, value found, value wanted. Source: Mikolov et al. 2013, "Efficient estimation of word
/// representations in vector space" (the lookup).
Status embedding(Stream& stream, const EmbeddingArgs& args);
RIDGE_OPERATOR(EmbeddingArgs, describe_embedding)

}  // namespace ridge
