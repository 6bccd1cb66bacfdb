#pragma once

#include "kernels/attention/paged.h"
#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

/// Operands of PagedAttention with rows = tokens, and:
struct AttentionPrefillArgs : PagedAttention {
  Tensor query_start;  // in [sequences + 1] i64: rows [query_start[s], query_start[s + 1]) of q are the last
                       // tokens of sequence s; other rows of o and lse are left as they are
  Count pairs;         // (query, key) pairs that causality and window allow: Σ causal_pairs (account/cost.h)
  Count keys;          // cached tokens read: Σ causal_keys
};
/// Exact causal attention of ragged chunks of new tokens over their paged cache:
///   o[t, h] = Σ_j softmax_j(score(t, h, j)) v[j, h / group],  score = softcap(scale q[t, h] · k[j, h /
///   group])
/// over the keys j that query t sees: all up to its own position, or the last `window` of them. group = heads
/// / kv_heads. A row that sees no key gives 0, and lse -inf. The bits of a row depend on its own q, keys,
/// values and position alone: not on threads, batch, chunking or page placement. Errors: kInvalidArgument,
/// before anything is written, naming operand, value found, value wanted (a live page_table entry outside of
/// the cache, a kv_length beyond page_table, query_start that falls or leaves q). Source: Vaswani et al.
/// 2017, eq. 1; online softmax: Milakov and Gimelshein 2018; grouped heads: Ainslie et al. 2023.
Status attention_prefill(Stream& stream, const AttentionPrefillArgs& args);
RIDGE_OPERATOR(AttentionPrefillArgs, describe_attention_prefill)

}  // namespace ridge
