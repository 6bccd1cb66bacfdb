#pragma once
// The ids of words met before in the same text: most words of a text are repetitions.

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "formats/tokenizer_pieces.h"

namespace ridge::tokenizer {

/// Keeps short words with few ids, one per slot; a later word takes the slot over. Off until enable().
class WordCache {
 public:
  /// Worth its 56 KiB for texts of some length.
  void enable() {
    slots_.resize(kSlots);
    seed_ = hash_seed();
  }
  /// Appends the ids of word, or returns false.
  bool find(std::string_view word, std::vector<int32_t>& ids) const {
    if (word.size() > kBytes || slots_.empty()) return false;
    const Key key = key_of(word);
    const Slot& slot = slots_[place(key)];
    if (slot.length != word.size() || slot.key != key) return false;
    ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return true;
  }
  /// Word, which is not empty, has the ids from `first` on.
  void put(std::string_view word, const std::vector<int32_t>& ids, size_t first) {
    if (word.size() > kBytes || slots_.empty() || ids.size() - first > kIds) return;
    const Key key = key_of(word);
    Slot& slot = slots_[place(key)];
    slot.key = key;
    slot.length = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(ids.size() - first);
    for (size_t i = first; i < ids.size(); ++i) slot.ids[i - first] = ids[i];
  }

 private:
  static constexpr size_t kSlots = 1024, kBytes = 16, kIds = 7;
  using Key = std::array<uint64_t, 2>;  // the bytes, then zeros
  struct Slot {
    Key key = {};
    std::array<int32_t, kIds> ids = {};
    uint8_t length = 0;  // 0: free
    uint8_t count = 0;
  };
  static Key key_of(std::string_view word) {
    Key key = {};
    std::memcpy(key.data(), word.data(), word.size());
    return key;
  }
  size_t place(const Key& key) const { return hash_pair(key[0] ^ hash_pair(key[1], seed_), seed_) % kSlots; }

  std::vector<Slot> slots_;
  uint64_t seed_ = 0;
};

}  // namespace ridge::tokenizer
