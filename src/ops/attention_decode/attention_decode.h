#pragma once

#include "kernels/attention/paged.h"
#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

/// Operands of PagedAttention with rows = sequences: row s of q is the last token of sequence s. o may be
/// bf16.
struct AttentionDecodeArgs : PagedAttention {
  Count pairs;  // keys that the queries see, summed over sequences: Σ causal_pairs(kv_length - 1, 1, window)
  Count keys;   // cached tokens read: the same number
  // For devices that start a call before the one before it has ended: what was complete before the step.
  bool tables_settled = false;    // page_table and kv_length
  int64_t unsettled = INT64_MAX;  // keys and values, but for so many tokens at the end of each sequence
};
/// Exact attention of one new token a sequence over its paged cache; formula and bits as attention_prefill's
/// for the same query. A sequence without keys gives 0, and lse -inf. Parallel over sequences, kv heads and
/// splits of 512 keys; the query heads of one kv head share one pass over its keys and values. Errors:
/// kInvalidArgument, before anything is written, naming operand, value found, value wanted. Source:
/// attention_prefill; splits over the cache: Dao et al. 2023, "Flash-Decoding for long-context inference".
Status attention_decode(Stream& stream, const AttentionDecodeArgs& args);
RIDGE_OPERATOR(AttentionDecodeArgs, describe_attention_decode)

}  // namespace ridge
