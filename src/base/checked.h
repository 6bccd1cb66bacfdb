#pragma once
// Arithmetic on numbers from outside: false (and *out untouched or meaningless) when the result does not fit.

#include <cstdint>

namespace ridge {

template <class T>
[[nodiscard]] bool checked_add(T a, T b, T* out) {
  return !__builtin_add_overflow(a, b, out);
}
template <class T>
[[nodiscard]] bool checked_mul(T a, T b, T* out) {
  return !__builtin_mul_overflow(a, b, out);
}

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t multiple) {
  return ceil_div(a, multiple) * multiple;
}

}  // namespace ridge
