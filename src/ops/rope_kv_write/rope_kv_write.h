#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct RopeKvWriteArgs {
  Tensor q;                 // in-out [tokens, heads, head_dim] f32
  Tensor k, v;              // in     [tokens, kv_heads, head_dim] f32
  Tensor k_pages, v_pages;  // into   [pages, kv_heads, page_size, head_dim] f32, f16, bf16
  Tensor slots;  // in     [tokens] i64: page * page_size + offset in the page; -1 skips the token's k and v
  Tensor positions;    // in     [tokens] i32, i64
  Tensor frequencies;  // in     [pairs] f32, radians per position
  bool interleaved = false;
  float magnitude = 1.0f;
  bool settled = false;  // slots and positions: rope's and kv_write's
  Count written;         // tokens whose slot is not -1, for the account; below 0 (the default): all
  RopeKvWriteArgs() : written(-1) {}
};
/// Rotates q in place, and writes k rotated and v into their slots; k itself stays as it is. Replaces rope,
/// rope, kv_write; formulas, errors and sources are theirs. i8 pages are not taken.
Status rope_kv_write(Stream& stream, const RopeKvWriteArgs& args);
RIDGE_OPERATOR(RopeKvWriteArgs, describe_rope_kv_write)

}  // namespace ridge
