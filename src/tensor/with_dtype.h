#pragma once
// A run-time dtype made a template argument, once, at the top of a kernel.

#include "base/status.h"
#include "tensor/tensor.h"

namespace ridge {

/// Calls body(T{}) with the first of Types that is t's dtype; kInternal when none is (a description that
/// allows a dtype which its kernel forgot).
template <class First, class... Rest, class Body>
auto with_dtype(const Tensor& t, const Body& body) -> decltype(body(First{})) {
  if (t.dtype == kDTypeOf<First>) return body(First{});
  if constexpr (sizeof...(Rest) > 0)
    return with_dtype<Rest...>(t, body);
  else
    return internal_error("a kernel has no code for dtype ", dtype_name(t.dtype));
}

}  // namespace ridge
