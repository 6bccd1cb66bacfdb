#include "formats/tokenizer_state.h"

namespace ridge {

TokenDecoder::TokenDecoder(Tokenizer tokenizer, DecodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options) {}

std::string TokenDecoder::push(int32_t id) {
  std::string_view bytes = tokenizer_.piece(id);
  if (id < 0 || id >= tokenizer_.vocab()) bytes = "\ufffd";
  const bool control = tokenizer_.type(id) == TokenType::kControl;
  if (control && !options_.keep_control) bytes = {};
  if (!control) {
    if (first_ && options_.strip_prefix && tokenizer_.state_->space_prefix && bytes.substr(0, 1) == " ")
      bytes.remove_prefix(1);
    first_ = false;
  }
  held_ += bytes;
  std::string out;
  for (size_t at = 0; at < held_.size();) {
    const CodePoint c = decode_utf8(held_, at);
    if (c.cut) {
      held_.erase(0, at);
      return out;
    }
    if (c.valid)
      out.append(held_, at, c.bytes);
    else
      append_utf8(out, kReplacement);
    at += c.bytes;
  }
  held_.clear();
  return out;
}

std::string TokenDecoder::finish() {
  std::string out = valid_utf8(held_);
  held_.clear();
  first_ = true;
  return out;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool keep_control) const {
  TokenDecoder decoder(*this, {keep_control, true});
  std::string out;
  for (const int32_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

}  // namespace ridge
