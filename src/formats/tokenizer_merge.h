#pragma once
// Merging neighbours by rank, the step that byte-level BPE and SentencePiece BPE share.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "formats/tokenizer_pieces.h"

namespace ridge::tokenizer {

/// A stretch of the text that is one token so far.
struct Symbol {
  int32_t id;  // -1: in no vocabulary, yet
  uint32_t begin;
  uint32_t end;
};

/// Merges symbols until no pair of neighbours has a rank: always the lowest rank, among equals the leftmost.
/// `find(left, right)` gives the Merge of two neighbours. Scratch memory is kept between calls.
class Merger {
 public:
  template <class Find>
  void merge(std::vector<Symbol>& symbols, const Find& find) {
    if (symbols.size() <= kShort)
      merge_short(symbols, find);
    else
      merge_long(symbols, find);
  }

 private:
  // Up to here looking at every rank for each merge is faster than a heap; longer words are rare.
  static constexpr size_t kShort = 32;
  static constexpr uint32_t kNowhere = UINT32_MAX;

  template <class Find>
  void merge_short(std::vector<Symbol>& symbols, const Find& find) {
    Merge pairs[kShort];
    size_t n = symbols.size();
    for (size_t i = 0; i + 1 < n; ++i) pairs[i] = find(symbols[i], symbols[i + 1]);
    while (n > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < n; ++i)
        if (pairs[i].rank < pairs[best].rank) best = i;
      if (pairs[best].rank == Merge::kNone) break;
      symbols[best] = {pairs[best].id, symbols[best].begin, symbols[best + 1].end};
      for (size_t i = best + 1; i + 1 < n; ++i) {
        symbols[i] = symbols[i + 1];
        pairs[i] = pairs[i + 1];
      }
      --n;
      if (best > 0) pairs[best - 1] = find(symbols[best - 1], symbols[best]);
      if (best + 1 < n) pairs[best] = find(symbols[best], symbols[best + 1]);
    }
    symbols.resize(n);
  }

  struct Link {
    uint32_t previous, next;
    Merge pair;  // with the next one
  };

  // A heap of rank and place in one number. An entry is stale when its place no longer has that rank; a
  // merged-away place has none.
  template <class Find>
  void merge_long(std::vector<Symbol>& symbols, const Find& find) {
    const size_t n = symbols.size();
    links_.resize(n);
    heap_.clear();
    for (size_t i = 0; i < n; ++i) {
      links_[i] = {i > 0 ? static_cast<uint32_t>(i - 1) : kNowhere,
                   i + 1 < n ? static_cast<uint32_t>(i + 1) : kNowhere,
                   {}};
      if (i + 1 < n) links_[i].pair = find(symbols[i], symbols[i + 1]);
      if (links_[i].pair.rank != Merge::kNone) heap_.push_back(entry(links_[i].pair.rank, i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      const uint64_t top = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
      const auto at = static_cast<uint32_t>(top);
      if (links_[at].pair.rank == top >> 32) join(symbols, find, at);
    }
    size_t kept = 0;
    for (uint32_t i = 0; i != kNowhere; i = links_[i].next) symbols[kept++] = symbols[i];
    symbols.resize(kept);
  }

  template <class Find>
  void join(std::vector<Symbol>& symbols, const Find& find, uint32_t at) {
    Link& link = links_[at];
    const uint32_t gone = link.next;
    symbols[at] = {link.pair.id, symbols[at].begin, symbols[gone].end};
    link.next = links_[gone].next;
    links_[gone].pair = {};
    if (link.next != kNowhere) links_[link.next].previous = at;
    renew(symbols, find, at);
    if (link.previous != kNowhere) renew(symbols, find, link.previous);
  }

  template <class Find>
  void renew(std::vector<Symbol>& symbols, const Find& find, uint32_t at) {
    Link& link = links_[at];
    link.pair = link.next == kNowhere ? Merge() : find(symbols[at], symbols[link.next]);
    if (link.pair.rank == Merge::kNone) return;
    heap_.push_back(entry(link.pair.rank, at));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  static uint64_t entry(uint32_t rank, size_t at) { return uint64_t{rank} << 32 | at; }

  std::vector<Link> links_;
  std::vector<uint64_t> heap_;
};

}  // namespace ridge::tokenizer
