#pragma once
// What a lever that changes numerics costs in quality.

#include <span>

#include "engine/engine.h"
#include "lab/advice_record.h"

namespace ridge {

/// KL(p || q) in nats of two softmax distributions given by logits [vocab], in double. A token that p allows
/// and q does not (-inf) gives infinity.
double kl_divergence(std::span<const float> p_logits, std::span<const float> q_logits);

/// Both engines see each prefix of `text` (2 to `tokens` ids) and their next-token distributions are
/// compared. Uses the engines alone: they must be idle. Errors: theirs.
Result<QualityCost> quality_cost(InferenceEngine& original, InferenceEngine& changed,
                                 const std::vector<int32_t>& text, int64_t tokens);

}  // namespace ridge
