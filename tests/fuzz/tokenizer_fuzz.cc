// Any bytes as text for small tokenizers, and as a tokenizer's description: refused, or ids that stand for
// the text.

#include "formats/tokenizer_specs.h"
#include "formats/unicode_nfc.h"
#include "fuzz/seeds.h"

namespace ridge {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  const std::string text =
      "The theatre's  aaaa\r\n \n12345 Caf\xc3\xa9 \xe2\x96\x81 <|end|>[tool] \xff\xf0\x9f\x98";
  for (char mode = 0; mode < 7; ++mode) out.push_back(std::string(1, mode) + "\3\2\5" + text);
  out.push_back(std::string(1, 7) + "gpt2\na\nb\nab\n\na b\n\nabab");
  out.push_back(std::string(1, 15) + "llama\na\nb\nab\n<0x41>\n\n\nabab");
  return out;
}

const Tokenizer& small(size_t which) {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> made;
    for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"})
      made.push_back(*Tokenizer::make(small_bpe(pre)));
    TokenizerSpec stripping = small_bpe();
    stripping.rules = {{258, true, true, true}};
    made.push_back(*Tokenizer::make(stripping));
    made.push_back(*Tokenizer::make(small_spm()));
    TokenizerSpec bare = small_spm();
    bare.add_space_prefix = false;
    made.push_back(*Tokenizer::make(bare));
    return made;
  }();
  return all[which];
}

std::string pieces(const Tokenizer& t, const std::vector<int32_t>& ids) {
  std::string out;
  for (const int32_t id : ids) out += t.piece(id);
  return out;
}

// U+2581 reads as a space in this model, so that it comes back as one.
std::string unescaped(std::string text) {
  for (size_t at; (at = text.find("\u2581")) != text.npos;) text.replace(at, 3, " ");
  return text;
}

void check_streaming(const Tokenizer& t, const std::vector<int32_t>& ids) {
  TokenDecoder decoder(t, {.keep_control = true, .strip_prefix = false});
  std::string out;
  for (const int32_t id : ids) {
    const std::string delta = decoder.push(id);
    RIDGE_FUZZ_CHECK(delta == valid_utf8(delta));
    out += delta;
  }
  RIDGE_FUZZ_CHECK(out + decoder.finish() == valid_utf8(pieces(t, ids)));
}

void check_text(size_t which, bool parse, size_t begin, size_t end, const std::string& text) {
  const Tokenizer& t = small(which);
  EncodeOptions options;
  options.parse_special = parse;
  begin = std::min(begin, text.size());
  end = std::min(begin + end, text.size());
  options.untrusted = {{begin, end}};
  const auto ids = t.encode(text, options);
  RIDGE_FUZZ_CHECK(ids.ok());
  for (const int32_t id : *ids) RIDGE_FUZZ_CHECK(id >= 0 && id < t.vocab());
  for (const int32_t id : *ids) RIDGE_FUZZ_CHECK(parse || t.type(id) != TokenType::kControl);
  if (which < 3) RIDGE_FUZZ_CHECK(pieces(t, *ids) == text);
  if (which == 3) RIDGE_FUZZ_CHECK(nfc(pieces(t, *ids)) == nfc(text));
  if (which == 6) RIDGE_FUZZ_CHECK(pieces(t, *ids) == unescaped(text));
  check_streaming(t, *ids);
  const auto plain = t.encode(text);
  options.untrusted = {{0, text.size()}};
  RIDGE_FUZZ_CHECK(*t.encode(text, options) == *plain);
}

// Lines: the model, tokens up to an empty line, merges up to an empty line; the rest is text.
void check_spec(bool parse, std::string_view data) {
  const auto line = [&] {
    const std::string_view one = data.substr(0, data.find('\n'));
    data.remove_prefix(std::min(one.size() + 1, data.size()));
    return std::string(one);
  };
  TokenizerSpec spec;
  spec.model = line();
  spec.pre = "llama-bpe";
  for (std::string token = line(); !token.empty(); token = line()) {
    const auto score = static_cast<float>(static_cast<signed char>(token.back()));
    const bool byte = token.substr(0, 3) == "<0x";
    add_token(spec, token, byte ? TokenType::kByte : static_cast<TokenType>(1 + token.size() % 5), score);
  }
  for (std::string merge = line(); !merge.empty(); merge = line()) spec.merges.push_back(merge);
  spec.unk = spec.tokens.empty() ? -1 : 0;
  const auto t = Tokenizer::make(spec);
  if (!t.ok()) {
    RIDGE_FUZZ_CHECK(t.status().message().size() < 1000 &&
                     t.status().message().find('\n') == std::string::npos);
    return;
  }
  EncodeOptions options;
  options.parse_special = parse;
  const auto ids = t->encode(data, options);
  RIDGE_FUZZ_CHECK(ids.ok());
  for (const int32_t id : *ids) RIDGE_FUZZ_CHECK(id >= 0 && id < t->vocab());
  check_streaming(*t, *ids);
}

}  // namespace
}  // namespace ridge

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ridge::write_seeds(*argc, *argv, ridge::seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const size_t which = data[0] % 8;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (which == 7)
    ridge::check_spec((data[0] & 8) != 0, rest);
  else
    ridge::check_text(which, (data[1] & 1) != 0, data[2], data[3], rest.substr(3));
  return 0;
}
