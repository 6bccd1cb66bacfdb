#include "formats/unicode_nfc.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "formats/unicode.h"

namespace ridge {
namespace {

// Below it nothing combines with what is before it, and every character is its own NFC.
constexpr uint32_t kFirstCombining = 0x300;
// In UTF-8: no byte of such a text reaches the lead byte of U+0300.
constexpr uint8_t kFirstCombiningLead = 0xcc;

// Hangul syllables are computed (The Unicode Standard, section 3.12).
constexpr uint32_t kSyllable = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11a7;
constexpr uint32_t kLeads = 19, kVowels = 21, kTails = 28, kSyllables = kLeads * kVowels * kTails;

constexpr uint32_t kRawByte = 0x110000;  // and up: a byte that is not UTF-8

class Tables {
 public:
  static const Tables& get() {
    static const Tables one;
    return one;
  }
  struct Parts {
    uint32_t first, second;  // second 0: none
  };
  const Parts* parts(uint32_t code) const {
    const auto found = parts_.find(code);
    return found == parts_.end() ? nullptr : &found->second;
  }
  uint8_t combining_class(uint32_t code) const {
    const auto found = classes_.find(code);
    return found == classes_.end() ? 0 : found->second;
  }
  // 0: the two do not compose.
  uint32_t composed(uint32_t first, uint32_t second) const {
    if (first - kLead < kLeads && second - kVowel < kVowels)
      return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
    const uint32_t syllable = first - kSyllable;
    if (syllable < kSyllables && syllable % kTails == 0 && second - kTail - 1 < kTails - 1)
      return first + (second - kTail);
    const auto found = composed_.find(uint64_t{first} << 32 | second);
    return found == composed_.end() ? 0 : found->second;
  }

 private:
  Tables() {
    using namespace nfc_tables;
    for (size_t i = 0; i < kPairsSize; i += 3) {
      parts_[kPairs[i]] = {kPairs[i + 1], kPairs[i + 2]};
      composed_[uint64_t{kPairs[i + 1]} << 32 | kPairs[i + 2]] = kPairs[i];
    }
    for (size_t i = 0; i < kOneWaySize; i += 3) parts_[kOneWay[i]] = {kOneWay[i + 1], kOneWay[i + 2]};
    for (size_t i = 0; i < kSinglesSize; i += 2 + kSingles[i + 1])
      for (uint32_t k = 0; k < kSingles[i + 1]; ++k) parts_[kSingles[i] + k] = {kSingles[i + 2 + k], 0};
    for (size_t i = 0; i < kClassesSize; i += 3)
      for (uint32_t k = 0; k < kClasses[i + 1]; ++k)
        classes_[kClasses[i] + k] = static_cast<uint8_t>(kClasses[i + 2]);
  }
  std::unordered_map<uint32_t, Parts> parts_;
  std::unordered_map<uint32_t, uint8_t> classes_;
  std::unordered_map<uint64_t, uint32_t> composed_;
};

// A stretch of text in which characters may combine.
class Stretch {
 public:
  void add(uint32_t code) {
    const uint32_t syllable = code - kSyllable;
    if (syllable < kSyllables) {
      put(kLead + syllable / (kVowels * kTails));
      put(kVowel + syllable / kTails % kVowels);
      if (syllable % kTails != 0) put(kTail + syllable % kTails);
      return;
    }
    // Only the first part is taken apart again; the longest chain of the tables is 4.
    uint32_t seconds[8];
    int count = 0;
    for (const Tables::Parts* p = tables_.parts(code); p != nullptr && count < 8; p = tables_.parts(code)) {
      code = p->first;
      if (p->second != 0) seconds[count++] = p->second;
    }
    put(code);
    while (count > 0) put(seconds[--count]);
  }
  // Appends the composed stretch and forgets it.
  void flush(std::string& out) {
    order();
    compose();
    for (const Unit& u : units_) {
      if (u.code >= kRawByte)
        out += static_cast<char>(u.code - kRawByte);
      else
        append_utf8(out, u.code);
    }
    units_.clear();
  }

 private:
  struct Unit {
    uint32_t code;
    uint8_t cls;
  };
  void put(uint32_t code) { units_.push_back({code, tables_.combining_class(code)}); }

  // Marks between two starters by their class, otherwise in the order of the text.
  void order() {
    for (size_t i = 0; i < units_.size();) {
      size_t end = i;
      while (end < units_.size() && units_[end].cls != 0) ++end;
      std::stable_sort(units_.begin() + static_cast<ptrdiff_t>(i),
                       units_.begin() + static_cast<ptrdiff_t>(end),
                       [](const Unit& a, const Unit& b) { return a.cls < b.cls; });
      i = end + 1;
    }
  }
  // A mark joins the starter before it unless one of the same or a higher class stands between.
  void compose() {
    size_t kept = 0, starter = 0;
    bool has_starter = false;
    for (size_t i = 0; i < units_.size(); ++i) {
      const Unit u = units_[i];
      const bool adjacent = has_starter && kept == starter + 1;
      const bool blocked = !adjacent && (kept == 0 || units_[kept - 1].cls >= u.cls);
      const uint32_t joined = has_starter && !blocked ? tables_.composed(units_[starter].code, u.code) : 0;
      if (joined != 0) {
        units_[starter].code = joined;
        continue;
      }
      if (u.cls == 0) {
        starter = kept;
        has_starter = true;
      }
      units_[kept++] = u;
    }
    units_.resize(kept);
  }

  const Tables& tables_ = Tables::get();
  std::vector<Unit> units_;
};

}  // namespace

bool may_change_in_nfc(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) >= kFirstCombiningLead; });
}

std::string nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Stretch stretch;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const size_t bytes = c.valid ? c.bytes : 1;
    // Nothing before such a character changes any more.
    if (!c.valid || c.value < kFirstCombining) stretch.flush(out);
    stretch.add(c.valid ? c.value : kRawByte + static_cast<uint8_t>(text[at]));
    at += bytes;
  }
  stretch.flush(out);
  return out;
}

}  // namespace ridge
