#pragma once
// Finds tokens that match as written (control and user-defined ones), in time linear in the text.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/tokenizer_pieces.h"

namespace ridge::tokenizer {

/// All places where one of a set of tokens stands, longest first at each place.
///
/// The automaton of Aho & Corasick (1975) over the reversed tokens, run over the reversed text: its state at
/// a place knows the longest token that begins there. Read forwards, the longest match could only be found by
/// going back.
class AddedTokens {
 public:
  /// `node` leads to every token that begins at byte `at`.
  struct Place {
    uint32_t at;  // limits::kTextBytes fits
    uint32_t node;
  };
  AddedTokens() : nodes_(1) {}
  /// The token's bytes must live until finish(). `always`: it matches in untrusted text too.
  void add(std::string_view token, int32_t id, bool always) { tokens_.push_back({token, id, always}); }
  /// After the last add(). Errors: kCorrupt for an empty token and for two equal ones, kResourceExhausted.
  Status finish();
  bool empty() const { return nodes_.size() == 1; }

  /// Places in descending order of `at`, appended to `places`.
  void find(std::string_view text, std::vector<Place>& places) const;

  /// Calls take(id, bytes) for the tokens at a place, longest first, until it returns true; false if it never
  /// did. With `only_always` for those alone, without looking at the others one by one.
  template <class Take>
  bool each(const Place& place, bool only_always, const Take& take) const {
    uint32_t n = only_always ? nodes_[place.node].always : place.node;
    for (; n != 0; n = only_always ? nodes_[nodes_[n].fail].always : nodes_[n].shorter)
      if (nodes_[n].id >= 0 && take(nodes_[n].id, size_t{nodes_[n].depth})) return true;
    return false;
  }

 private:
  struct Node {
    uint32_t fail = 0;     // the longest proper suffix that is a node
    uint32_t shorter = 0;  // the longest proper suffix that is a token, 0: none
    uint32_t always = 0;   // the same for tokens added with `always`, the node itself included
    int32_t id = -1;       // of the token that ends here
    uint32_t depth = 0;
    uint32_t parent = 0;
    uint8_t byte = 0;  // on the edge from the parent
  };
  uint32_t child(uint32_t node, uint8_t byte) const {
    const Merge found = edges_.find(static_cast<int32_t>(node), byte);
    return found.rank == Merge::kNone ? 0 : static_cast<uint32_t>(found.id);
  }
  uint32_t step(uint32_t node, uint8_t byte) const;
  struct Token {
    std::string_view bytes;
    int32_t id;
    bool always;
  };
  Status insert(const Token& added);
  void link();

  std::vector<Node> nodes_;
  std::vector<Token> tokens_;
  std::array<uint32_t, 256> roots_ = {};  // children of the root: where nearly every byte of a text looks
  MergeTable edges_;                      // (node, byte) to child
};

}  // namespace ridge::tokenizer
