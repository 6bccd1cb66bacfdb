#pragma once

#include <charconv>

namespace ridge {

/// The double with an f32's shortest digits: 0.1 for 0.1f, not 0.10000000149011612. For text and for JSON,
/// whose numbers are doubles. `v` is finite.
inline double shortest(float v) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  double same = 0;
  std::from_chars(digits, end, same);
  return same;
}

}  // namespace ridge
