#pragma once
// What a fault of the checked build says, in the words of the same refusal on the host.

#include "base/text.h"
#include "runtime/cuda/faults.h"

namespace ridge {

/// "page_table[1, 0] is 99, needs 0 to 5: the pages of the cache".
inline std::string fault_text(const Fault& f) {
  struct Words {
    const char* operand;
    bool has_column;
    const char* range;
  };
  const auto words_of = [](FaultKind kind) -> Words {
    switch (kind) {
      case FaultKind::kPage:
        return {"page_table", true, "the pages of the cache"};
      case FaultKind::kLength:
        return {"kv_length", false, "what page_table has room for"};
      case FaultKind::kQueryRows:
        return {"query_start", false, "rising, within the rows of q"};
      case FaultKind::kSlot:
        return {"slots", false, "the places of the cache, or -1 for none"};
      default:
        return {"positions", false, "what angles are exact for"};
    }
  };
  const Words words = words_of(f.kind);
  return text(words.operand, "[", f.row, words.has_column ? text(", ", f.column) : std::string(), "] is ",
              f.value, ", needs ", f.least, " to ", f.most, ": ", words.range);
}

}  // namespace ridge
