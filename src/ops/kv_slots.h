#pragma once
// What the descriptions and references of the operators that write into a paged cache share.

#include "ops/operator.h"

namespace ridge {

/// Gives the tokens of a case distinct slots of `places` in an order of no pattern; every `skipped`-th token,
/// and those for which none is left, get -1. Returns how many have one.
int64_t fill_slots(const Tensor& slots, int64_t places, int64_t skipped, Random& random);

/// Account: tokens that are written (below 0: all), and what their rows hold.
int64_t written_tokens(const Dims& d);
int64_t written_elements(const Dims& d);
int64_t written_scales(const Dims& d);

/// body(token, page, offset) for each token with a slot in the pages [pages, kv_heads, page_size, head_dim].
template <class Body>
void for_each_slot(const Tensor& slots, const Tensor& pages, const Body& body) {
  for (int64_t t = 0; t < slots.dim(0); ++t) {
    const int64_t slot = slots.i64(t), page_size = pages.dim(2);
    if (slot >= 0 && slot < pages.dim(0) * page_size) body(t, slot / page_size, slot % page_size);
  }
}

}  // namespace ridge
