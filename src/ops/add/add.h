#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct AddArgs {
  Tensor y;  // out [rows, columns] f32, bf16; may be a or b
  Tensor a;  // in  [rows, columns], the dtype of y
  Tensor b;  // in  [rows, columns], the dtype of y
};
/// y = a + b, in f32, rounded once. Errors: kInvalidArgument, naming operand, value found, value wanted.
Status add(Stream& stream, const AddArgs& args);
RIDGE_OPERATOR(AddArgs, describe_add)

}  // namespace ridge
