#pragma once
// Pre-tokenizers of byte-level BPE: where a stretch of text is cut before merging. Each equals a published
// regular expression, matched by hand in one pass, so that no input can make it backtrack or recurse.

#include <optional>
#include <string_view>

#include "formats/unicode.h"

namespace ridge::tokenizer {

enum class Split {
  kGpt2,
  kSmollm,    // digits apart first
  kLlamaBpe,  // Llama 3
  kQwen2,     // its text is in NFC already
};

/// By the name in tokenizer.ggml.pre.
std::optional<Split> split_by_name(std::string_view name);
/// "gpt-2, smollm, ...", for messages.
const char* split_names();

/// The end of the pre-token that starts at text[begin]; begin < text.size(). Bytes that are not UTF-8 are
/// symbols (neither letter nor number nor space). Sources of the expressions: at each rule's function.
size_t split_end(Split split, const CharClasses& classes, std::string_view text, size_t begin);

}  // namespace ridge::tokenizer
