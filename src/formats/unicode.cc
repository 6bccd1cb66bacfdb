#include "formats/unicode.h"

namespace ridge {
namespace {

uint8_t byte_at(std::string_view text, size_t at) {
  return static_cast<uint8_t>(text[at]);
}

struct Lead {
  uint8_t bytes;      // of the whole sequence; 0: no sequence starts so
  uint8_t low, high;  // what the second byte may be: rules out overlong forms, surrogates, more than U+10FFFF
};

Lead lead_of(uint8_t b) {
  if (b < 0xc2) return {0, 0, 0};
  if (b < 0xe0) return {2, 0x80, 0xbf};
  if (b < 0xf0)
    return {3, static_cast<uint8_t>(b == 0xe0 ? 0xa0 : 0x80), static_cast<uint8_t>(b == 0xed ? 0x9f : 0xbf)};
  if (b < 0xf5)
    return {4, static_cast<uint8_t>(b == 0xf0 ? 0x90 : 0x80), static_cast<uint8_t>(b == 0xf4 ? 0x8f : 0xbf)};
  return {0, 0, 0};
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  const uint8_t first = byte_at(text, at);
  if (first < 0x80) return {first, 1, true, false};
  const Lead lead = lead_of(first);
  if (lead.bytes == 0) return {};
  uint32_t value = first & (0x7f >> lead.bytes);
  for (uint8_t i = 1; i < lead.bytes; ++i) {
    if (at + i >= text.size()) return {kReplacement, i, false, true};
    const uint8_t b = byte_at(text, at + i);
    if (b < (i == 1 ? lead.low : 0x80) || b > (i == 1 ? lead.high : 0xbf))
      return {kReplacement, i, false, false};
    value = value << 6 | (b & 0x3f);
  }
  return {value, lead.bytes, true, false};
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>((0xff00 >> (more + 1) & 0xff) | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (c.valid)
      out.append(text, at, c.bytes);
    else
      append_utf8(out, kReplacement);
    at += c.bytes;
  }
  return out;
}

CharClasses::CharClasses() : table_(kTable, static_cast<uint8_t>(CharClass::kOther)) {
  size_t count = 0;
  const CharRange* ranges = unicode_ranges(&count);
  for (size_t i = 0; i < count; ++i)
    for (uint32_t c = ranges[i].first; c < ranges[i].first + ranges[i].count && c < kTable; ++c)
      table_[c] = static_cast<uint8_t>(ranges[i].cls);
}

const CharClasses& CharClasses::get() {
  static const CharClasses one;
  return one;
}

bool CharClasses::word(uint32_t code) const {
  switch (of(code)) {
    case CharClass::kLetter:
    case CharClass::kMark:
    case CharClass::kDigit:
    case CharClass::kLetterNumber:
    case CharClass::kConnector:
      return true;
    case CharClass::kOtherNumber:
    case CharClass::kSpace:
      return false;
    case CharClass::kOther:
      break;
  }
  // Join_Control, and the symbols that are Alphabetic: circled, parenthesized and squared Latin letters.
  return code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9) ||
         (code >= 0x1f130 && code <= 0x1f149) || (code >= 0x1f150 && code <= 0x1f169) ||
         (code >= 0x1f170 && code <= 0x1f189);
}

}  // namespace ridge
