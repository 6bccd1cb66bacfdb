#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct GatherRowsArgs {
  Tensor y;      // out [n, columns] f32, bf16
  Tensor x;      // in  [rows, columns], the dtype of y
  Tensor index;  // in  [n] i32, i64; each in [0, rows)
};
/// y[i] = x[index[i]]: the rows whose logits are wanted, one for each finishing prefill and each decode.
/// Errors: kInvalidArgument, naming operand, value found, value wanted; an index out of range, on the
/// CPU; on a GPU its row is NaN.
Status gather_rows(Stream& stream, const GatherRowsArgs& args);
RIDGE_OPERATOR(GatherRowsArgs, describe_gather_rows)

}  // namespace ridge
