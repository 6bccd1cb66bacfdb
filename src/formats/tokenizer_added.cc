#include "formats/tokenizer_added.h"

#include <algorithm>
#include <numeric>

#include "base/limits.h"

namespace ridge::tokenizer {

uint32_t AddedTokens::step(uint32_t node, uint8_t byte) const {
  while (node != 0) {
    if (const uint32_t next = child(node, byte); next != 0) return next;
    node = nodes_[node].fail;
  }
  return roots_[byte];
}

Status AddedTokens::insert(const Token& added) {
  const auto& [token, id, always] = added;
  uint32_t node = 0;
  for (size_t i = token.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(token[i]);
    uint32_t next = node == 0 ? roots_[byte] : child(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      Node made;
      made.depth = nodes_[node].depth + 1;
      made.parent = node;
      made.byte = byte;
      nodes_.push_back(made);
      if (node == 0)
        roots_[byte] = next;
      else
        edges_.insert(static_cast<int32_t>(node), byte, {0, static_cast<int32_t>(next)});
    }
    node = next;
  }
  if (node == 0)
    return corrupt("tokenizer.ggml.tokens[", id, "] is empty, but of a type that matches as written");
  if (nodes_[node].id >= 0)
    return corrupt("tokenizer.ggml.tokens[", nodes_[node].id, "] and [", id, "] both match ",
                   printable(token));
  nodes_[node].id = id;
  if (always) nodes_[node].always = node;
  return {};
}

void AddedTokens::link() {
  // By depth, since a node's links lead to shallower ones.
  std::vector<uint32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return nodes_[a].depth < nodes_[b].depth; });
  for (const uint32_t n : order) {
    Node& node = nodes_[n];
    if (node.depth < 2) continue;
    node.fail = step(nodes_[node.parent].fail, node.byte);
    if (node.always == 0) node.always = nodes_[node.fail].always;
    node.shorter = nodes_[node.fail].id >= 0 ? node.fail : nodes_[node.fail].shorter;
  }
}

Status AddedTokens::finish() {
  int64_t bytes = 0;
  for (const Token& t : tokens_) bytes += static_cast<int64_t>(t.bytes.size());
  if (bytes > limits::kAddedTokenBytes)
    return resource_exhausted("the control and user-defined tokens have ", bytes, " bytes, the limit is ",
                              limits::kAddedTokenBytes);
  edges_ = MergeTable(static_cast<size_t>(bytes));
  for (const Token& t : tokens_) RIDGE_TRY(insert(t));
  link();
  tokens_ = {};
  return {};
}

void AddedTokens::find(std::string_view text, std::vector<Place>& places) const {
  if (empty()) return;
  uint32_t node = 0;
  for (size_t at = text.size(); at-- > 0;) {
    node = step(node, static_cast<uint8_t>(text[at]));
    if (node != 0 && (nodes_[node].id >= 0 || nodes_[node].shorter != 0))
      places.push_back({static_cast<uint32_t>(at), node});
  }
}

}  // namespace ridge::tokenizer
