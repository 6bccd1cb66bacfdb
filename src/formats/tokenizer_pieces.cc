#include "formats/tokenizer_pieces.h"

#include <chrono>
#include <cstring>

namespace ridge::tokenizer {
namespace {

// A power of two of at least twice the entries: probes stay short, and one free slot ends every search.
size_t slot_count(size_t capacity) {
  size_t slots = 2;
  while (slots < 2 * capacity) slots *= 2;
  return slots;
}

uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t hash_seed() {
  static const char anchor = 0;  // its address is random where the system randomizes addresses
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return mix(reinterpret_cast<uintptr_t>(&anchor) ^ 0xa0761d6478bd642full, static_cast<uint64_t>(now) | 1);
}

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  const char* p = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = seed ^ left * 0xe7037ed1a0b428dbull;
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = mix(hash ^ word, 0x8ebc6af09c88c6e3ull);
  }
  uint64_t word = 0;
  std::memcpy(&word, p, left);
  return mix(hash ^ word, 0x589965cc75374cc3ull);
}

PieceIndex::PieceIndex(size_t capacity)
    : seed_(hash_seed()), mask_(slot_count(capacity) - 1), slots_(slot_count(capacity)) {}

int32_t PieceIndex::insert(const Pieces& pieces, int32_t id) {
  const std::string_view bytes = pieces[id];
  const uint64_t hash = hash_bytes(bytes, seed_);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.id < 0) {
      slot = {id, tag};
      return -1;
    }
    if (slot.tag == tag && pieces[slot.id] == bytes) return slot.id;
  }
}

MergeTable::MergeTable(size_t capacity)
    : seed_(hash_seed()), mask_(slot_count(capacity) - 1), slots_(slot_count(capacity)) {}

bool MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  for (uint64_t at = hash_pair(key, seed_) & mask_;; at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.key == key) return false;
    if (slot.key == kFree) {
      slot = {key, merge};
      return true;
    }
  }
}

}  // namespace ridge::tokenizer
