#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

struct AddRmsNormArgs {
  Tensor sum;  // out [rows, hidden] f32; may be a
  Tensor y;    // out [rows, hidden] f32, bf16
  Tensor a;    // in  [rows, hidden] f32
  Tensor b;    // in  [rows, hidden] f32
  Tensor w;    // in  [hidden] f32
  float epsilon = 1e-5f;
  float weight_offset = 0.0f;
};
/// sum = a + b; y = rms_norm(sum): the residual stream is read and written once instead of twice.
/// Replaces add, rms_norm. Formula, errors and source: ops/rms_norm/rms_norm.h.
Status add_rms_norm(Stream& stream, const AddRmsNormArgs& args);
RIDGE_OPERATOR(AddRmsNormArgs, describe_add_rms_norm)

}  // namespace ridge
