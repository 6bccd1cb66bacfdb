#pragma once
// Text to token ids and back, as the model's own tokenizer does it: byte-level BPE ("gpt2") and SentencePiece
// BPE
// ("llama"), from the vocabulary that a model file carries.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace ridge {

/// What a vocabulary entry is; the numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

/// How an added token meets its surroundings; GGUF files carry none of this.
struct AddedTokenRule {
  int32_t id = -1;
  bool lstrip = false;       // swallows white space before it
  bool rstrip = false;       // ... and after it
  bool single_word = false;  // matches only where no word character touches it
};

/// A tokenizer as a file describes it; nothing here is checked yet.
struct TokenizerSpec {
  std::string model = {};                // "gpt2" or "llama"
  std::string pre = {};                  // pre-tokenizer of gpt2: "gpt-2", "smollm", "llama-bpe", "qwen2"
  std::vector<std::string> tokens = {};  // [vocab]; gpt2: bytes written as GPT-2's printable characters
  std::vector<float> scores = {};        // [vocab], llama only
  std::vector<int32_t> types = {};       // [vocab] of TokenType, or empty: all normal (gpt2 only)
  std::vector<std::string> merges = {};  // "left right", best first; gpt2 only
  std::vector<AddedTokenRule> rules = {};
  int64_t bos = -1, eos = -1, eot = -1, eom = -1, unk = -1, pad = -1;  // -1: none
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;  // llama: a space before each stretch of text
};

struct TokenizerOptions {
  std::string assume_pre = {};  // where spec.pre is missing or unknown: the user's --assume-pre
};

struct EncodeOptions {
  bool add_bos = false;        // BOS first, unless parsed text brings it itself: never two
  bool add_eos = false;        // EOS last
  bool parse_special = false;  // control tokens written out in the text become their ids
  /// With parse_special: [begin, end) byte ranges that a user wrote, ascending and disjoint. A control token
  /// that touches one stays text; pre-tokenization still runs across, so that ids of harmless text do not
  /// change.
  std::vector<std::pair<size_t, size_t>> untrusted = {};
};

namespace tokenizer {
struct State;
}

/// Immutable, cheap to copy, safe to use from many threads.
class Tokenizer {
 public:
  /// Checks the spec and builds the tables.
  /// Errors: kCorrupt naming field, entry and value (piece too long, id outside the vocabulary, merge of
  /// absent pieces, pieces that occur twice, arrays of different lengths); kDeclined naming an unknown model
  /// or pre-tokenizer.
  static Result<Tokenizer> make(TokenizerSpec spec, const TokenizerOptions& options = {});

  /// The ids of text, which may be any bytes. n log n in the text, without recursion.
  /// A byte that the vocabulary cannot express is left out, as the reference library leaves it out: see
  /// unencodable(). Errors: kResourceExhausted (limits::kTextBytes), kInvalidArgument (options.untrusted).
  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// How many bytes of text encode() has no token for. 0 for every vocabulary with all 256 bytes.
  int64_t unencodable(std::string_view text) const;

  /// The text of ids, each invalid UTF-8 sequence as U+FFFD; control tokens are left out unless asked for.
  /// An id outside the vocabulary gives U+FFFD.
  std::string decode(const std::vector<int32_t>& ids, bool keep_control = false) const;
  /// The bytes that an id stands for (not always UTF-8 by itself); empty for an id outside the vocabulary.
  std::string_view piece(int32_t id) const;
  TokenType type(int32_t id) const;  // kUnknown for an id outside the vocabulary
  /// The control or user-defined token written so, or -1.
  int32_t find(std::string_view text) const;

  int64_t vocab() const;
  int32_t bos() const;  // -1: none; so the others
  int32_t eos() const;
  int32_t unk() const;
  int32_t pad() const;
  bool add_bos() const;  // what the file asks for; encode() follows only its options
  bool add_eos() const;
  /// True for what ends an answer: eos, eot and eom of the file, and control tokens with a well-known
  /// turn-end text.
  bool is_end(int32_t id) const;
  /// True when text begins with BOS written out: worth a warning where BOS is added as well.
  bool starts_with_bos(std::string_view text) const;
  /// SHA-256 of all that decides ids, 64 hex digits.
  const std::string& hash() const;
  const std::string& pre() const;  // the pre-tokenizer in use; empty for llama

 private:
  friend class TokenDecoder;
  explicit Tokenizer(std::shared_ptr<const tokenizer::State> state) : state_(std::move(state)) {}
  std::shared_ptr<const tokenizer::State> state_;
};

struct DecodeOptions {
  bool keep_control = false;  // control tokens as their text; otherwise they give nothing
  bool strip_prefix =
      true;  // llama: drops the space that add_space_prefix put first; false to go on in a text
};

/// Ids to text one at a time: what comes out is always valid UTF-8, an unfinished character is held back.
class TokenDecoder {
 public:
  explicit TokenDecoder(Tokenizer tokenizer, DecodeOptions options = {});
  /// The text that became certain with this id; often empty inside a character.
  std::string push(int32_t id);
  /// What was held back, as U+FFFD; the decoder then starts anew.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::string held_;  // an unfinished UTF-8 sequence, at most 3 bytes
  bool first_ = true;
};

}  // namespace ridge
