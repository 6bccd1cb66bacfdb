#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct RopeArgs {
  Tensor x;            // in-out [tokens, heads, head_dim] f32, bf16
  Tensor positions;    // in     [tokens] i32, i64
  Tensor frequencies;  // in     [pairs] f32, radians per position; see rope_frequencies.h
  bool interleaved = false;
  float magnitude = 1.0f;  // of cos and sin: YaRN's and LongRoPE's attention factor
  bool settled = false;    // positions were complete before the step: a GPU may read them before it waits
};
/// Rotates pairs of x by position * frequency, in place. Pair i is elements (i, pairs + i), or with
/// `interleaved` (2i, 2i + 1):
///   a' = magnitude (a cos - b sin),  b' = magnitude (b cos + a sin).
/// Elements from 2 * pairs on stay as they are. Angles are reduced exactly: any position has the accuracy of
/// position 0.
/// Errors: kInvalidArgument when 2 * pairs exceeds head_dim, or the magnitude or a frequency is not finite.
/// Source: Su et al. 2021, "RoFormer", eq. 34; the half-split order is that of GPT-NeoX.
Status rope(Stream& stream, const RopeArgs& args);
RIDGE_OPERATOR(RopeArgs, describe_rope)

}  // namespace ridge
