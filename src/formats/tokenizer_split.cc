#include "formats/tokenizer_split.h"

namespace ridge::tokenizer {
namespace {

enum Kind : uint8_t { kSymbol, kLetter, kNumber, kSpace, kEnd };

struct Char {
  Kind kind;
  uint8_t bytes;
  uint32_t code;
};

class Reader {
 public:
  Reader(const CharClasses& classes, std::string_view text) : classes_(classes), text_(text) {}

  Char at(size_t i) const {
    if (i >= text_.size()) return {kEnd, 0, 0};
    const auto byte = static_cast<uint8_t>(text_[i]);
    if (byte < 0x80) return {kind(byte), 1, byte};
    const CodePoint c = decode_utf8(text_, i);
    // One byte at a time, so that a later valid character is never swallowed.
    if (!c.valid) return {kSymbol, 1, kReplacement};
    return {kind(c.value), c.bytes, c.value};
  }
  /// The end of the run of this kind that starts at i.
  size_t run(Kind kind, size_t i) const {
    for (;;) {
      const Char c = at(i);
      if (c.kind != kind) return i;
      i += c.bytes;
    }
  }

 private:
  Kind kind(uint32_t code) const {
    switch (const CharClass c = classes_.of(code)) {
      case CharClass::kLetter:
        return kLetter;
      case CharClass::kSpace:
        return kSpace;
      default:
        return CharClasses::is_number(c) ? kNumber : kSymbol;
    }
  }
  const CharClasses& classes_;
  std::string_view text_;
};

// 's|'t|'re|'ve|'m|'ll|'d after an apostrophe at i; with ignore_case as (?i:...), where U+017F folds to s.
size_t contraction_end(const Reader& reader, size_t i, bool ignore_case) {
  const auto lower = [&](const Char& c) -> uint32_t {
    if (!ignore_case) return c.code;
    if (c.code >= 'A' && c.code <= 'Z') return c.code + 32;
    return c.code == 0x17f ? 's' : c.code;
  };
  const Char first = reader.at(i + 1);
  const size_t one = i + 1 + first.bytes;
  const uint32_t a = lower(first);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return one;
  const Char second = reader.at(one);
  const uint32_t b = lower(second);
  const bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
  return two ? one + second.bytes : i;
}

// \s+(?!\S)|\s+ at a run of spaces [i, end): all of it at the end of the text, otherwise the last one is left
// to what follows, unless it is alone.
size_t spaces_end(const Reader& reader, size_t i, bool digits_apart) {
  size_t end = i, last = i;
  for (;;) {
    const Char c = reader.at(end);
    if (c.kind != kSpace) {
      const bool text_ends = c.kind == kEnd || (digits_apart && c.kind == kNumber);
      return text_ends || last == i ? end : last;
    }
    last = end;
    end += c.bytes;
  }
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Radford et al. 2019 (GPT-2), encoder.py. With digits_apart (SmolLM: Digits, then this expression on what is
// between) each number is alone and ends the text for what is before it.
size_t gpt2_end(const Reader& reader, size_t i, bool digits_apart) {
  const Char c = reader.at(i);
  if (c.code == '\'') {
    const size_t end = contraction_end(reader, i, false);
    if (end > i) return end;
  }
  size_t word = i;
  Kind kind = c.kind;
  if (c.code == ' ') {
    word = i + 1;
    kind = reader.at(word).kind;
    if (kind == kSpace || kind == kEnd || (digits_apart && kind == kNumber))
      return spaces_end(reader, i, digits_apart);
  } else if (kind == kSpace) {
    return spaces_end(reader, i, digits_apart);
  }
  if (digits_apart && kind == kNumber) return i + c.bytes;
  return reader.run(kind, word);
}

// \s*[\r\n]+ at a space: through the last line end of the run of spaces, or i without one.
size_t lines_end(const Reader& reader, size_t i) {
  size_t end = i;
  for (;;) {
    const Char c = reader.at(i);
    if (c.kind != kSpace) return end;
    i += c.bytes;
    if (c.code == '\r' || c.code == '\n') end = i;
  }
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+| \s+(?!\S)|\s+          Llama 3 (max_digits 3) and Qwen2 (1), in their
// tokenizer.json.
size_t llama3_end(const Reader& reader, size_t i, int max_digits) {
  const Char c = reader.at(i);
  if (c.code == '\'') {
    const size_t end = contraction_end(reader, i, true);
    if (end > i) return end;
  }
  if (c.kind == kLetter) return reader.run(kLetter, i);
  if (c.kind == kNumber) {
    size_t end = i;
    for (int n = 0; n < max_digits; ++n) {
      const Char digit = reader.at(end);
      if (digit.kind != kNumber) break;
      end += digit.bytes;
    }
    return end;
  }
  const size_t next = i + c.bytes;
  const Kind following = reader.at(next).kind;
  const bool line_end = c.code == '\r' || c.code == '\n';
  if (!line_end && following == kLetter) return reader.run(kLetter, next);
  if (c.kind == kSymbol || (c.code == ' ' && following == kSymbol)) {
    size_t end = reader.run(kSymbol, c.kind == kSymbol ? i : next);
    for (;; ++end) {
      const uint32_t code = reader.at(end).code;
      if (code != '\r' && code != '\n') return end;
    }
  }
  const size_t end = lines_end(reader, i);
  return end > i ? end : spaces_end(reader, i, false);
}

struct Named {
  const char* name;
  Split split;
};
constexpr Named kNamed[] = {{"gpt-2", Split::kGpt2},
                            {"smollm", Split::kSmollm},
                            {"llama-bpe", Split::kLlamaBpe},
                            {"qwen2", Split::kQwen2}};

}  // namespace

std::optional<Split> split_by_name(std::string_view name) {
  for (const Named& n : kNamed)
    if (n.name == name) return n.split;
  return {};
}

const char* split_names() {
  return "gpt-2, smollm, llama-bpe, qwen2";
}

size_t split_end(Split split, const CharClasses& classes, std::string_view text, size_t begin) {
  const Reader reader(classes, text);
  switch (split) {
    case Split::kGpt2:
      return gpt2_end(reader, begin, false);
    case Split::kSmollm:
      return gpt2_end(reader, begin, true);
    case Split::kLlamaBpe:
      return llama3_end(reader, begin, 3);
    case Split::kQwen2:
      break;
  }
  return llama3_end(reader, begin, 1);
}

}  // namespace ridge::tokenizer
