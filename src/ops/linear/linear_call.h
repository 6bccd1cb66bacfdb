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

/// Calls body with the Product of w's block-quantized dtype.
template <template <DType> class Product, class Body>
auto with_quantized(const LinearArgs& a, const Body& body) -> decltype(body(Product<kQ8_0>(a))) {
  switch (a.w.dtype) {
    case kQ8_0:
      return body(Product<kQ8_0>(a));
    case kQ4_0:
      return body(Product<kQ4_0>(a));
    case kQ4_1:
      return body(Product<kQ4_1>(a));
    case kQ5_0:
      return body(Product<kQ5_0>(a));
    case kQ4_K:
      return body(Product<kQ4_K>(a));
    default:
      return body(Product<kQ6_K>(a));
  }
}

/// A kernel over rows16. WithProduct, without state: (args, body) calls body with the Product that fits the
/// dtypes.
template <class Declines, class WithProduct>
Kernel<LinearArgs> rows16_kernel(const char* name, Engine engine, Declines declines, WithProduct) {
  Kernel<LinearArgs> k;
  k.name = name, k.engine = engine, k.declines = declines;
  k.workspace = [](const LinearArgs& a) -> int64_t {
    return WithProduct{}(a, [&](const auto& p) { return rows16::workspace_bytes(p, a.x.dim(0)); });
  };
  k.executed_flops = [](const LinearArgs& a) -> int64_t {
    return WithProduct{}(a, [&](const auto& p) {
      const int64_t tokens = rows16::executed_tokens<std::decay_t<decltype(p)>>(a.x.dim(0));
      return 2 * tokens * (rows16::tiles(a.w.dim(0)) * rows16::kRows) * a.w.dim(1);
    });
  };
  k.run = [](Stream& stream, const LinearArgs& a) -> Status {
    return WithProduct{}(a,
                         [&](const auto& p) { return rows16::multiply(as_cpu(stream), product_of(a), p); });
  };
  return k;
}

}  // namespace ridge::RIDGE_ISA
