#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "formats/tokenizer_model.h"

namespace ridge::tokenizer {
namespace {

constexpr std::string_view kEscapedSpace = "\u2581";

// U+2581 as a space: a third of the bytes, and text without U+2581 needs no copy.
void unescape(std::string_view written, std::string& out) {
  out.clear();
  for (size_t at = 0;;) {
    const size_t next = written.find(kEscapedSpace, at);
    out.append(written.substr(at, next - at));
    if (next == written.npos) return;
    out += ' ';
    at = next + kEscapedSpace.size();
  }
}

class SpmModel : public Model {
 public:
  explicit SpmModel(const Vocabulary& vocabulary) : vocabulary_(vocabulary) { byte_ids_.fill(-1); }

  void encode(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const override {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = word_end(text, begin);
      const std::string_view word = text.substr(begin, end - begin);
      if (const size_t first = ids.size(); !scratch.cache.find(word, ids)) {
        encode_word(word, scratch, ids);
        scratch.cache.put(word, ids, first);
      }
      begin = end;
    }
  }
  int64_t unencodable(std::string_view) const override { return 0; }  // make_spm() refuses what could not

  Status add_pieces(const TokenizerSpec& spec);
  Status add_bytes(const TokenizerSpec& spec);
  Status rank(const TokenizerSpec& spec);
  void split_unused();

 private:
  // No piece spans a space and a byte before it that is not joined_, so merging never crosses there.
  size_t word_end(std::string_view text, size_t begin) const {
    for (size_t at = text.find(' ', begin + 1); at != text.npos; at = text.find(' ', at + 1))
      if (!joined_[static_cast<uint8_t>(text[at - 1])]) return at;
    return text.size();
  }
  // Leaves word in scratch.symbols, merged as far as it goes without the piece `never`.
  void merge(std::string_view word, int32_t never, Scratch& scratch) const;
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;
  void emit(const Symbol& symbol, std::string_view word, std::vector<int32_t>& ids) const;
  void emit_parts(const Symbol& whole, std::string_view word, std::vector<int32_t>& ids) const;
  void emit_bytes(std::string_view bytes, std::vector<int32_t>& ids) const;
  int32_t find(std::string_view bytes) const {
    return bytes.size() > longest_ ? -1 : index_.find(vocabulary_.pieces, bytes);
  }

  const Vocabulary& vocabulary_;
  PieceIndex index_;                   // of what merging can give: normal and unused pieces
  std::vector<uint32_t> ranks_;        // [vocab], lower for better scores
  size_t longest_ = 0;                 // bytes
  std::array<bool, 256> joined_ = {};  // bytes that stand before a space inside some piece
  std::array<int32_t, 128> ascii_;     // the pieces of one character that most text begins from
  std::array<int32_t, 256> byte_ids_;
  int32_t unk_ = -1;
  struct Parts {
    int32_t left, right;
    uint32_t left_bytes;
  };
  std::unordered_map<int32_t, Parts> parts_;  // of unused pieces, which are taken apart again after merging
};

void SpmModel::merge(std::string_view word, int32_t never, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const CodePoint c = decode_utf8(word, at);
    const size_t end = at + (c.valid ? c.bytes : 1);
    symbols.push_back(
        {find(word.substr(at, end - at)), static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
    at = end;
  }
  scratch.merger.merge(symbols, [&](const Symbol& l, const Symbol& r) {
    const int32_t id = find(word.substr(l.begin, r.end - l.begin));
    return id < 0 || id == never ? Merge() : Merge{ranks_[id], id};
  });
}

void SpmModel::encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  auto& symbols = scratch.symbols;
  merge(word, -1, scratch);
  for (const Symbol& s : symbols)
    if (vocabulary_.types[std::max(s.id, 0)] == TokenType::kUnused)
      emit_parts(s, word, ids);
    else
      emit(s, word, ids);
}

void SpmModel::emit(const Symbol& symbol, std::string_view word, std::vector<int32_t>& ids) const {
  const std::string_view bytes = word.substr(symbol.begin, symbol.end - symbol.begin);
  if (symbol.id < 0)
    emit_bytes(bytes, ids);
  else
    ids.push_back(symbol.id);
}

void SpmModel::emit_parts(const Symbol& whole, std::string_view word, std::vector<int32_t>& ids) const {
  std::vector<Symbol> open = {whole};
  while (!open.empty()) {
    const Symbol s = open.back();
    open.pop_back();
    const auto parts = parts_.find(s.id);
    if (parts == parts_.end()) {
      emit(s, word, ids);
      continue;
    }
    const uint32_t middle = s.begin + parts->second.left_bytes;
    open.push_back({parts->second.right, middle, s.end});
    open.push_back({parts->second.left, s.begin, middle});
  }
}

void SpmModel::emit_bytes(std::string_view bytes, std::vector<int32_t>& ids) const {
  if (bytes == " ") bytes = kEscapedSpace;
  const bool all = std::all_of(bytes.begin(), bytes.end(),
                               [&](char c) { return byte_ids_[static_cast<uint8_t>(c)] >= 0; });
  if (all)
    for (const char c : bytes) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
  else
    ids.push_back(unk_);
}

bool mergeable(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUnused;
}

Status SpmModel::add_pieces(const TokenizerSpec& spec) {
  index_ = PieceIndex(spec.tokens.size());
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    // A raw space in such a piece never matches: SentencePiece escapes the text first.
    if (!mergeable(vocabulary_.types[i]) || spec.tokens[i].find(' ') != std::string::npos) continue;
    const std::string_view piece = vocabulary_.pieces[i];
    if (piece.empty()) continue;  // some vocabularies pad with them; nothing merges to nothing
    const int32_t same = index_.insert(vocabulary_.pieces, static_cast<int32_t>(i));
    if (same >= 0)
      return corrupt("tokenizer.ggml.tokens[", same, "] and [", i, "] are both ", printable(spec.tokens[i]));
    longest_ = std::max(longest_, piece.size());
    for (size_t at = piece.find(' ', 1); at != piece.npos; at = piece.find(' ', at + 1))
      joined_[static_cast<uint8_t>(piece[at - 1])] = true;
  }
  for (size_t c = 0; c < ascii_.size(); ++c) {
    const char one = static_cast<char>(c);
    ascii_[c] = find({&one, 1});
  }
  return {};
}

// Byte pieces are written <0x00> to <0xFF>.
Status SpmModel::add_bytes(const TokenizerSpec& spec) {
  int found = 0;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (vocabulary_.types[i] != TokenType::kByte) continue;
    const std::string_view bytes = vocabulary_.pieces[i];
    if (bytes.size() != 1)
      return corrupt("tokenizer.ggml.tokens[", i, "] is of type byte but reads ", printable(spec.tokens[i]),
                     ", not <0x00> to <0xFF>");
    int32_t& id = byte_ids_[static_cast<uint8_t>(bytes[0])];
    if (id >= 0)
      return corrupt("tokenizer.ggml.tokens[", id, "] and [", i, "] are both the byte ",
                     printable(spec.tokens[i]));
    id = static_cast<int32_t>(i);
    ++found;
  }
  unk_ = static_cast<int32_t>(spec.unk);
  if (found < 256 && unk_ < 0)
    return corrupt("the vocabulary has ", found,
                   " of 256 byte tokens and no tokenizer.ggml.unknown_token_id: some text has no ids");
  return {};
}

// The higher the score the lower the rank, and equal scores have equal ranks: then the leftmost pair goes
// first. The bits of a float order as its values do once the sign bit is flipped, and all bits of negative
// ones.
Status SpmModel::rank(const TokenizerSpec& spec) {
  ranks_.resize(spec.scores.size());
  for (size_t i = 0; i < spec.scores.size(); ++i) {
    const float score = spec.scores[i] + 0.0f;  // makes -0 +0
    if (!std::isfinite(score)) return corrupt("tokenizer.ggml.scores[", i, "] is ", score);
    const auto bits = std::bit_cast<uint32_t>(score);
    ranks_[i] = ~(bits >> 31 ? ~bits : bits | 0x80000000u);
  }
  return {};
}

// SentencePiece merges through unused pieces and in the end takes them apart again, into what they were
// merged from.
void SpmModel::split_unused() {
  Scratch scratch;
  for (size_t i = 0; i < vocabulary_.types.size(); ++i) {
    if (vocabulary_.types[i] != TokenType::kUnused) continue;
    const auto id = static_cast<int32_t>(i);
    merge(vocabulary_.pieces[i], id, scratch);
    const auto& s = scratch.symbols;
    if (s.size() == 2) parts_[id] = {s[0].id, s[1].id, s[0].end};  // otherwise merging never gives this piece
  }
}

// "<0x0A>" to its byte; otherwise the piece with spaces for U+2581.
void piece_bytes(std::string_view written, TokenType type, std::string& out) {
  const auto hex = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (type == TokenType::kByte && written.size() == 6 && written.substr(0, 3) == "<0x" && written[5] == '>' &&
      hex(written[3]) >= 0 && hex(written[4]) >= 0)
    out.assign(1, static_cast<char>(hex(written[3]) << 4 | hex(written[4])));
  else
    unescape(written, out);
}

}  // namespace

Result<std::unique_ptr<Model>> make_spm(const TokenizerSpec& spec, Vocabulary& vocabulary) {
  std::string bytes;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    piece_bytes(spec.tokens[i], vocabulary.types[i], bytes);
    vocabulary.pieces.add(bytes);
  }
  auto model = std::make_unique<SpmModel>(vocabulary);
  RIDGE_TRY(model->add_pieces(spec));
  RIDGE_TRY(model->add_bytes(spec));
  RIDGE_TRY(model->rank(spec));
  model->split_unused();
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace ridge::tokenizer
