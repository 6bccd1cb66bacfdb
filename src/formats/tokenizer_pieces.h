#pragma once
// The vocabulary's bytes in one block, and hash tables over them that a hostile file cannot slow down.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridge::tokenizer {

/// Differs between processes: which keys collide cannot be chosen in advance.
uint64_t hash_seed();

/// Of a short string; reads 8 bytes at a time.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed);
inline uint64_t hash_pair(uint64_t key, uint64_t seed) {
  const unsigned __int128 product = static_cast<unsigned __int128>(key ^ seed) * 0x9e3779b97f4a7c15ull;
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
}

/// Strings by index, end to end in one block.
class Pieces {
 public:
  void reserve(size_t count, size_t bytes) {
    ends_.reserve(count + 1);
    bytes_.reserve(bytes);
  }
  void add(std::string_view piece) {
    bytes_ += piece;
    ends_.push_back(bytes_.size());
  }
  size_t size() const { return ends_.size() - 1; }
  std::string_view operator[](size_t i) const { return {bytes_.data() + ends_[i], ends_[i + 1] - ends_[i]}; }

 private:
  std::string bytes_;
  std::vector<size_t> ends_ = {0};
};

/// Finds the index of a piece by its bytes. Open addressing, at most half full.
class PieceIndex {
 public:
  PieceIndex() = default;
  explicit PieceIndex(size_t capacity);
  /// Adds index `id` of `pieces`, or returns the index that has the same bytes already, or -1 when added.
  int32_t insert(const Pieces& pieces, int32_t id);
  /// -1 when absent.
  int32_t find(const Pieces& pieces, std::string_view bytes) const {
    const uint64_t hash = hash_bytes(bytes, seed_);
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.id < 0 || (slot.tag == tag && pieces[slot.id] == bytes)) return slot.id;
    }
  }

 private:
  struct Slot {
    int32_t id = -1;
    uint32_t tag = 0;
  };
  uint64_t seed_ = 0;
  uint64_t mask_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(1);
};

/// How a pair of symbols merges: the lowest rank goes first.
struct Merge {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t rank = kNone;
  int32_t id = -1;
};

/// Merges by the pair of ids.
class MergeTable {
 public:
  MergeTable() = default;
  explicit MergeTable(size_t capacity);
  /// False when the pair is there already.
  bool insert(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (uint64_t at = hash_pair(key, seed_) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key || slot.key == kFree) return slot.merge;
    }
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;  // no pair has it: ids are not negative
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };
  uint64_t seed_ = 0;
  uint64_t mask_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(1);
};

}  // namespace ridge::tokenizer
