#include "formats/tokenizer_model.h"
#include "formats/unicode_nfc.h"

namespace ridge::tokenizer {
namespace {

// GPT-2 writes a byte as a printable character: itself where it is one, otherwise U+0100 onwards in order.
struct ByteCharacters {
  std::array<uint32_t, 256> of_byte;
  std::array<int16_t, 512> to_byte;
  ByteCharacters() {
    to_byte.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool printable_byte = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
      of_byte[b] = printable_byte ? b : next++;
      to_byte[of_byte[b]] = static_cast<int16_t>(b);
    }
  }
};

// The bytes that a written token stands for; false when it holds a character that stands for no byte.
bool to_bytes(const ByteCharacters& characters, std::string_view written, std::string& bytes) {
  bytes.clear();
  for (size_t at = 0; at < written.size();) {
    const CodePoint c = decode_utf8(written, at);
    if (!c.valid || c.value >= characters.to_byte.size() || characters.to_byte[c.value] < 0) return false;
    bytes += static_cast<char>(characters.to_byte[c.value]);
    at += c.bytes;
  }
  return true;
}

class BpeModel : public Model {
 public:
  BpeModel(Split split, const Vocabulary& vocabulary)
      : split_(split), vocabulary_(vocabulary), classes_(CharClasses::get()) {
    byte_ids_.fill(-1);
  }

  void encode(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const override {
    // Qwen2's tokenizer.json composes text first; its GGUF files do not say so.
    std::string composed;
    if (split_ == Split::kQwen2 && may_change_in_nfc(text)) {
      composed = nfc(text);
      text = composed;
    }
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = split_end(split_, classes_, text, begin);
      const std::string_view word = text.substr(begin, end - begin);
      if (const size_t first = ids.size(); !scratch.cache.find(word, ids)) {
        encode_word(word, scratch, ids);
        scratch.cache.put(word, ids, first);
      }
      begin = end;
    }
  }

  int64_t unencodable(std::string_view text) const override {
    int64_t count = 0;
    for (const char c : text) count += byte_ids_[static_cast<uint8_t>(c)] < 0;
    return count;
  }

  Status add_bytes(const PieceIndex& written, const Pieces& written_pieces);
  Status add_merges(const TokenizerSpec& spec, const PieceIndex& written, const Pieces& written_pieces);
  Status add_whole_words();

 private:
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
    if (whole_words_first_) {
      const int32_t id = whole_words_.find(vocabulary_.pieces, word);
      if (id >= 0) {
        ids.push_back(id);
        return;
      }
    }
    auto& symbols = scratch.symbols;
    symbols.clear();
    for (const char c : word)
      if (const int32_t id = byte_ids_[static_cast<uint8_t>(c)]; id >= 0) symbols.push_back({id, 0, 0});
    scratch.merger.merge(symbols, [&](const Symbol& l, const Symbol& r) { return merges_.find(l.id, r.id); });
    for (const Symbol& s : symbols) ids.push_back(s.id);
  }

  Split split_;
  const Vocabulary& vocabulary_;
  const CharClasses& classes_;
  std::array<int32_t, 256> byte_ids_;
  MergeTable merges_;
  // Llama 3's tokenizer.json sets ignore_merges: a word that is a piece is taken whole, whatever merging
  // would give.
  bool whole_words_first_ = false;
  PieceIndex whole_words_;
};

Status BpeModel::add_bytes(const PieceIndex& written, const Pieces& written_pieces) {
  const ByteCharacters characters;
  int found = 0;
  for (int b = 0; b < 256; ++b) {
    std::string one;
    append_utf8(one, characters.of_byte[b]);
    byte_ids_[b] = written.find(written_pieces, one);
    found += byte_ids_[b] >= 0;
  }
  if (found == 0)
    return corrupt("tokenizer.ggml.tokens has no token for any single byte: not a byte-level vocabulary");
  return {};
}

Status BpeModel::add_merges(const TokenizerSpec& spec, const PieceIndex& written,
                            const Pieces& written_pieces) {
  merges_ = MergeTable(spec.merges.size());
  std::string joined;
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const std::string_view merge = spec.merges[i];
    const auto bad = [&](const auto&... why) {
      return corrupt("tokenizer.ggml.merges[", i, "] ", printable(merge), why...);
    };
    const size_t space = merge.find(' ', 1);
    if (merge.empty() || space == merge.npos || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != merge.npos)
      return bad(" is not two pieces with one space between them");
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    int32_t ids[3];
    const std::string_view names[3] = {left, right, joined};
    for (int k = 0; k < 3; ++k) {
      ids[k] = written.find(written_pieces, names[k]);
      if (ids[k] < 0)
        return bad(" names the piece ", printable(names[k]), ", which tokenizer.ggml.tokens does not have");
    }
    if (!merges_.insert(ids[0], ids[1], {static_cast<uint32_t>(i), ids[2]})) return bad(" occurs twice");
  }
  return {};
}

Status BpeModel::add_whole_words() {
  whole_words_first_ = true;
  whole_words_ = PieceIndex(vocabulary_.pieces.size());
  for (size_t i = 0; i < vocabulary_.pieces.size(); ++i)
    if (vocabulary_.types[i] == TokenType::kNormal)
      whole_words_.insert(vocabulary_.pieces, static_cast<int32_t>(i));
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> make_bpe(const TokenizerSpec& spec, Split split, Vocabulary& vocabulary) {
  const ByteCharacters characters;
  const size_t count = spec.tokens.size();
  Pieces written;
  PieceIndex index(count);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    written.add(spec.tokens[i]);
    const int32_t same = index.insert(written, static_cast<int32_t>(i));
    if (same >= 0)
      return corrupt("tokenizer.ggml.tokens[", same, "] and [", i, "] are both ", printable(spec.tokens[i]));
    const bool mapped =
        vocabulary.types[i] == TokenType::kNormal && to_bytes(characters, spec.tokens[i], bytes);
    vocabulary.pieces.add(mapped ? bytes : spec.tokens[i]);
  }
  auto model = std::make_unique<BpeModel>(split, vocabulary);
  RIDGE_TRY(model->add_bytes(index, written));
  RIDGE_TRY(model->add_merges(spec, index, written));
  if (split == Split::kLlamaBpe) RIDGE_TRY(model->add_whole_words());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace ridge::tokenizer
