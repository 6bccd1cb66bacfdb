#pragma once
// UTF-8 read strictly, and the general categories that tokenizers ask for (Unicode 16.0).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

/// The replacement character, which stands for bytes that are not UTF-8.
inline constexpr uint32_t kReplacement = 0xfffd;

struct CodePoint {
  uint32_t value = kReplacement;
  uint8_t bytes = 1;  // how many the sequence takes; invalid: its longest prefix that some valid sequence has
  bool valid = false;  // no overlong form, no surrogate, nothing above U+10FFFF
  bool cut = false;    // invalid only because the text ends: more bytes could complete it
};

/// The code point at text[at]; at < text.size().
CodePoint decode_utf8(std::string_view text, size_t at);
/// Appends the UTF-8 form of a code point up to U+10FFFF.
void append_utf8(std::string& out, uint32_t code);
/// The text with each invalid sequence replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

enum class CharClass : uint8_t {
  kOther,
  kLetter,        // L
  kMark,          // M
  kDigit,         // Nd
  kLetterNumber,  // Nl
  kOtherNumber,   // No
  kConnector,     // Pc
  kSpace,         // White_Space, whatever its category
};

struct CharRange {
  uint32_t first;
  uint32_t count;
  CharClass cls;
};
/// Every class but kOther, ascending and disjoint.
const CharRange* unicode_ranges(size_t* count);

/// Looks classes up in a byte per code point of the four assigned planes: 256 KiB, of which a text touches
/// little.
class CharClasses {
 public:
  /// The one table, made at the first call. Thread-safe.
  static const CharClasses& get();

  CharClass of(uint32_t code) const {
    if (code < kTable) return static_cast<CharClass>(table_[code]);
    return code >= kSelectors && code < kSelectors + 240 ? CharClass::kMark : CharClass::kOther;
  }
  bool letter(uint32_t code) const { return of(code) == CharClass::kLetter; }
  bool space(uint32_t code) const { return of(code) == CharClass::kSpace; }
  bool number(uint32_t code) const { return is_number(of(code)); }
  static bool is_number(CharClass c) { return c >= CharClass::kDigit && c <= CharClass::kOtherNumber; }
  /// \w of UTS #18: Alphabetic, M, Nd, Pc, Join_Control.
  bool word(uint32_t code) const;

 private:
  static constexpr uint32_t kTable = 0x40000;
  static constexpr uint32_t kSelectors = 0xe0100;  // variation selectors: all that has a class further up
  CharClasses();
  std::vector<uint8_t> table_;
};

}  // namespace ridge
