#pragma once
// UTF-8 as Unicode 15, table 3-7 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.

#include <cstddef>
#include <string_view>

namespace ridge {

/// Bytes of the well-formed sequence that `text` starts with; 0 if it starts with none (or is empty).
size_t utf8_sequence(std::string_view text);

/// Whether all of `text` is well-formed.
bool is_utf8(std::string_view text);

}  // namespace ridge
