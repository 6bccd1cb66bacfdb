#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct LinearRopeKvArgs {
  Tensor q;                 // out  [tokens, heads, head_dim] f32
  Tensor k_pages, v_pages;  // into [pages, kv_heads, page_size, head_dim] f32, f16, bf16
  Tensor x;                 // in   [tokens, in] bf16
  Tensor w;                 // in   [rows, in] bf16; rows = (heads + 2 kv_heads) head_dim: those of q, k, v
  Tensor bias;              // in   [rows] f32; may be absent
  Tensor slots;             // in   [tokens] i64: page * page_size + offset in the page; -1 skips k and v
  Tensor positions;         // in   [tokens] i32, i64
  Tensor frequencies;       // in   [pairs] f32, radians per position
  bool interleaved = false;
  float magnitude = 1.0f;
  bool settled = false;  // slots and positions: rope's and kv_write's
  Count written;         // tokens whose slot is not -1, for the account; below 0 (the default): all
  LinearRopeKvArgs() : written(-1) {}
};
/// q, k, v = x · wᵀ + bias by rows; q is rotated, k rotated and v go into their slots and nowhere else.
/// Replaces linear, rope_kv_write; formulas and sources are theirs. Errors: kInvalidArgument, naming operand,
/// value found, value wanted.
Status linear_rope_kv(Stream& stream, const LinearRopeKvArgs& args);
RIDGE_OPERATOR(LinearRopeKvArgs, describe_linear_rope_kv)

}  // namespace ridge
