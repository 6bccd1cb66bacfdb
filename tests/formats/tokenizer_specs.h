#pragma once
// Small tokenizers for tests, made without files.

#include <string>
#include <utility>
#include <vector>

#include "formats/tokenizer.h"
#include "formats/unicode.h"

namespace ridge {

/// A byte as GPT-2 writes it in a vocabulary.
inline std::string gpt2_byte(int byte) {
  int code = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b != 0xad);
    if (b == byte) {
      std::string out;
      append_utf8(out, static_cast<uint32_t>(itself ? b : code));
      return out;
    }
    code += !itself;
  }
  return {};
}

inline std::string gpt2_bytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += gpt2_byte(static_cast<uint8_t>(c));
  return out;
}

inline int32_t add_token(TokenizerSpec& spec, std::string written, TokenType type, float score = 0) {
  spec.tokens.push_back(std::move(written));
  spec.types.push_back(static_cast<int32_t>(type));
  if (spec.model == "llama") spec.scores.push_back(score);
  return static_cast<int32_t>(spec.tokens.size()) - 1;
}

/// Adds the merge of two pieces given as bytes.
inline void add_merge(TokenizerSpec& spec, std::string_view left, std::string_view right) {
  spec.merges.push_back(gpt2_bytes(left) + " " + gpt2_bytes(right));
  add_token(spec, gpt2_bytes(std::string(left) + std::string(right)), TokenType::kNormal);
}

/// Ids 0..255 are the bytes, 256 <|end|> and 257 <|start|> are control tokens, 258 [tool] is user-defined;
/// then merges: "th" 259, "the" 260, " the" 261, "aa" 262, "aaaa" 263.
inline TokenizerSpec small_bpe(std::string pre = "gpt-2") {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = std::move(pre);
  for (int b = 0; b < 256; ++b) add_token(spec, gpt2_byte(b), TokenType::kNormal);
  add_token(spec, "<|end|>", TokenType::kControl);
  add_token(spec, "<|start|>", TokenType::kControl);
  add_token(spec, "[tool]", TokenType::kUserDefined);
  add_merge(spec, "t", "h");
  add_merge(spec, "th", "e");
  add_merge(spec, " ", "the");
  add_merge(spec, "a", "a");
  add_merge(spec, "aa", "aa");
  spec.bos = 257;
  spec.eos = 256;
  return spec;
}

/// 0 <unk>, 1 <s>, 2 </s>, 3..258 bytes, then pieces by score: U+2581 259, a 260, b 261, ab 262, U+2581a 263,
/// and two newlines, user-defined, 264.
inline TokenizerSpec small_spm() {
  TokenizerSpec spec;
  spec.model = "llama";
  add_token(spec, "<unk>", TokenType::kUnknown);
  add_token(spec, "<s>", TokenType::kControl);
  add_token(spec, "</s>", TokenType::kControl);
  for (int b = 0; b < 256; ++b) {
    const char* hex = "0123456789ABCDEF";
    add_token(spec, std::string("<0x") + hex[b / 16] + hex[b % 16] + ">", TokenType::kByte);
  }
  add_token(spec, "\u2581", TokenType::kNormal, -100);
  add_token(spec, "a", TokenType::kNormal, -101);
  add_token(spec, "b", TokenType::kNormal, -102);
  add_token(spec, "ab", TokenType::kNormal, -1);
  add_token(spec, "\u2581a", TokenType::kNormal, -2);
  add_token(spec, "\n\n", TokenType::kUserDefined, -1000);
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.add_bos = true;
  return spec;
}

}  // namespace ridge
