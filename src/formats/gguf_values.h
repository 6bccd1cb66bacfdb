#pragma once
// Metadata values as they are, for programs that print them.

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/gguf.h"

namespace ridge {

/// Strings are views into the GgufFile; f32 stays apart from f64, so that it can be printed as short as it
/// is.
using GgufValue = std::variant<bool, int64_t, uint64_t, float, double, std::string_view>;

/// The value, or of an array the first ones, `most` at most; of an array of arrays none.
std::vector<GgufValue> gguf_entry_values(const GgufEntry& entry, uint64_t most);

}  // namespace ridge
