#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct CastArgs {
  Tensor y;  // out [rows, columns] bf16, f32
  Tensor x;  // in  [rows, columns] f32, bf16
};
/// y = x, rounded to nearest, ties to even. Errors: kInvalidArgument, naming operand, value found, value
/// wanted.
Status cast(Stream& stream, const CastArgs& args);
RIDGE_OPERATOR(CastArgs, describe_cast)

}  // namespace ridge
