#pragma once
// Canonical composition (NFC, Unicode Standard Annex #15) as tokenizers do it: code points younger than
// Unicode 9.0 stay where they are, since the reference library's normalizer does not know them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ridge {

/// The text in NFC. Bytes that are not UTF-8 stay as they are, and nothing composes across them. n log n in
/// the longest run of combining marks, otherwise linear.
std::string nfc(std::string_view text);

/// False: the text is in NFC. True: it may not be. Quick.
bool may_change_in_nfc(std::string_view text);

namespace nfc_tables {
extern const uint32_t kPairs[], kOneWay[], kSingles[], kClasses[];
extern const size_t kPairsSize, kOneWaySize, kSinglesSize, kClassesSize;
}  // namespace nfc_tables

}  // namespace ridge
