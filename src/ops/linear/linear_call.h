#pragma once
// What the kernels of linear share: the layouts that they take, and the call as rows16 sees it.

#include "kernels/rows16/multiply.h"
#include "ops/linear/linear.h"

namespace ridge::RIDGE_ISA {

inline Decline declines_layout(const LinearArgs& a) {
  if (a.w.layout != rows16::layout(a.w.dtype))
    return decline("w is not in rows16: pack it with the operator's pack_rows");
  for (const Tensor* t : {&a.y, &a.x, &a.x_scale, &a.residual})
    if (*t && !t->rows_are_dense()) return decline("a row has strides ", t->stride(1), ", needs 1: copy it");
  if (a.bias && !a.bias.rows_are_dense()) return decline("bias has stride ", a.bias.stride(0), ": copy it");
  return {};
}

inline rows16::Product product_of(const LinearArgs& a) {
  return {a.y, a.w, a.bias, a.residual};
}

}  // namespace ridge::RIDGE_ISA
