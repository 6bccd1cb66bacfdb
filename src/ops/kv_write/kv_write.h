#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct KvWriteArgs {
  Tensor k, v;              // in     [tokens, kv_heads, head_dim] f32
  Tensor k_pages, v_pages;  // into   [pages, kv_heads, page_size, head_dim] f32, f16, bf16, i8
  Tensor k_scale, v_scale;  // into   [pages, kv_heads, page_size] f32; with i8 pages, and only with them
  Tensor slots;             // in     [tokens] i64: page * page_size + offset in the page; -1 skips the token
  bool settled = false;     // slots were complete before the step: a GPU may read them before it waits
  Count written;            // tokens whose slot is not -1, for the account; below 0 (the default): all
  KvWriteArgs() : written(-1) {}
};
/// Writes the keys and values of new tokens into their slots of the paged cache, rounded to nearest even in
/// the cache's type. i8: scale = max |x| / 127 of each token and head (at least the smallest normal f32),
/// code = round(x / scale); a row with a value that is not finite gets a NaN scale, so that it reads back as
/// NaN. Slots that no token names keep their bytes. Two tokens with one slot are the caller's error: either
/// may win. Errors: kInvalidArgument, before anything is written, for a slot outside of the pages and for i8
/// pages without scales (or scales without i8 pages). Source: Kwon et al. 2023, "PagedAttention", §4.
Status kv_write(Stream& stream, const KvWriteArgs& args);
RIDGE_OPERATOR(KvWriteArgs, describe_kv_write)

}  // namespace ridge
