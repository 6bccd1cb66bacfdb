#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct FeedTokensArgs {
  Tensor ids;      // into [tokens] i32
  Tensor source;   // in  [tokens] i32: row of `sampled`; below 0: the id stays
  Tensor sampled;  // in  [rows] i32
  Count fed;       // tokens whose id is written, for the account; below 0 (the default): all
  FeedTokensArgs() : fed(-1) {}
};
/// ids[t] = sampled[source[t]] where source[t] >= 0: a step starts from tokens that the step before sampled,
/// without the host. A source beyond `sampled` leaves the id. Errors: kInvalidArgument, naming operand, value
/// found, value wanted.
Status feed_tokens(Stream& stream, const FeedTokensArgs& args);
RIDGE_OPERATOR(FeedTokensArgs, describe_feed_tokens)

}  // namespace ridge
