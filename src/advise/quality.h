#pragma once
// What a lever that changes numerics costs in quality.

#include <span>

#include "engine/engine.h"
#include "lab/advice_record.h"

namespace ridge {

/// KL(p || q) in nats of two softmax distributions given by logits [vocab], in double. A token that p allows
/// and q does not (-inf) gives infinity.
double kl_divergence(std::span<const float> p_logits, std::span<const float> q_logits);

/// The distributions after each token of `text` under the formats of two engines' options, in one pass each:
/// nothing is sampled. Uses their formats, KV type and fusions alone. kInvalidArgument for an empty text; the
/// errors of ForcedText.
Result<QualityCost> quality_cost(Device& device, const Model& model, const EngineOptions& original,
                                 const EngineOptions& changed, const std::vector<int32_t>& text);

}  // namespace ridge
