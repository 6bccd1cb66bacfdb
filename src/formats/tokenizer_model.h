#pragma once
// What turns a stretch of text without special tokens into ids: one class per tokenizer.ggml.model.

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/tokenizer.h"
#include "formats/tokenizer_cache.h"
#include "formats/tokenizer_merge.h"
#include "formats/tokenizer_pieces.h"
#include "formats/tokenizer_split.h"

namespace ridge::tokenizer {

class Model {
 public:
  virtual ~Model() = default;
  /// What encoding one text reuses from word to word.
  struct Scratch {
    std::vector<Symbol> symbols;
    Merger merger;
    WordCache cache;
  };
  /// Appends the ids of text.
  virtual void encode(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const = 0;
  /// Bytes of text that encode() leaves out.
  virtual int64_t unencodable(std::string_view text) const = 0;
};

/// The checked spec and the bytes of each piece, which a Model keeps.
struct Vocabulary {
  Pieces pieces;                 // [vocab], the bytes that each token stands for
  std::vector<TokenType> types;  // [vocab]
};

/// Byte-level BPE (Sennrich et al. 2016; bytes: Radford et al. 2019). Fills vocabulary.pieces.
/// Errors: kCorrupt, kDeclined as of Tokenizer::make.
Result<std::unique_ptr<Model>> make_bpe(const TokenizerSpec& spec, Split split, Vocabulary& vocabulary);

/// SentencePiece's BPE (Kudo & Richardson 2018). Fills vocabulary.pieces; in them a space is a space, not
/// U+2581, and encode() expects text in the same form.
Result<std::unique_ptr<Model>> make_spm(const TokenizerSpec& spec, Vocabulary& vocabulary);

}  // namespace ridge::tokenizer
