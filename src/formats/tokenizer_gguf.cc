#include "formats/tokenizer_gguf.h"

#include "base/log.h"

namespace ridge {
namespace {

constexpr const char* kPrefix = "tokenizer.ggml.";

Status read_strings(const GgufFile& file, const char* name, std::vector<std::string>& out) {
  RIDGE_ASSIGN(const auto views, file.get_string_array(text(kPrefix, name)));
  out.assign(views.begin(), views.end());
  return {};
}

Status read_id(const GgufFile& file, const char* name, int64_t& out) {
  RIDGE_ASSIGN(const auto found, file.find_i64(text(kPrefix, name, "_token_id")));
  if (found && *found < 0) return corrupt(kPrefix, name, "_token_id is ", *found);
  out = found.value_or(-1);
  return {};
}

Status read_bool(const GgufFile& file, const char* name, bool& out) {
  RIDGE_ASSIGN(const auto found, file.find_bool(text(kPrefix, name)));
  out = found.value_or(out);
  return {};
}

// What other kinds of SentencePiece model do to the text first.
Status check_normalization(const GgufFile& file) {
  bool removes_spaces = false;
  RIDGE_TRY(read_bool(file, "remove_extra_whitespaces", removes_spaces));
  if (removes_spaces)
    return declined(kPrefix, "remove_extra_whitespaces is true; only text taken as it is is supported");
  if (const std::string key = text(kPrefix, "precompiled_charsmap"); file.has(key))
    return declined(key, " is present; only text taken as it is is supported");
  return {};
}

}  // namespace

Result<TokenizerSpec> tokenizer_spec(const GgufFile& file) {
  TokenizerSpec spec;
  RIDGE_ASSIGN(const auto model, file.get_string(text(kPrefix, "model")));
  RIDGE_ASSIGN(const auto pre, file.find_string(text(kPrefix, "pre")));
  spec.model = model;
  spec.pre = pre.value_or("");
  RIDGE_TRY(check_normalization(file));
  RIDGE_TRY(read_strings(file, "tokens", spec.tokens));
  if (spec.model == "gpt2") RIDGE_TRY(read_strings(file, "merges", spec.merges));
  if (spec.model == "llama") {
    RIDGE_ASSIGN(spec.scores, file.get_f32_array(text(kPrefix, "scores")));
  }
  if (const std::string key = text(kPrefix, "token_type"); spec.model == "llama" || file.has(key)) {
    RIDGE_ASSIGN(spec.types, file.get_i32_array(key));
  }
  RIDGE_TRY(read_id(file, "bos", spec.bos));
  RIDGE_TRY(read_id(file, "eos", spec.eos));
  RIDGE_TRY(read_id(file, "eot", spec.eot));
  RIDGE_TRY(read_id(file, "eom", spec.eom));
  RIDGE_TRY(read_id(file, "unknown", spec.unk));
  RIDGE_TRY(read_id(file, "padding", spec.pad));
  // Without the key, SentencePiece models of the llama family begin with BOS; GPT-2's do not.
  spec.add_bos = spec.model == "llama" && spec.bos >= 0;
  RIDGE_TRY(read_bool(file, "add_bos_token", spec.add_bos));
  RIDGE_TRY(read_bool(file, "add_eos_token", spec.add_eos));
  RIDGE_TRY(read_bool(file, "add_space_prefix", spec.add_space_prefix));
  return spec;
}

Result<Tokenizer> load_tokenizer(const GgufFile& file, const TokenizerOptions& options) {
  auto spec = tokenizer_spec(file);
  if (!spec.ok()) return spec.status().within(file.path());
  auto tokenizer = Tokenizer::make(spec.take(), options);
  if (!tokenizer.ok()) return tokenizer.status().within(file.path());
  log(LogLevel::kInfo, file.path(), ": tokenizer of ", tokenizer->vocab(), " tokens, hash ",
      tokenizer->hash());
  return tokenizer;
}

}  // namespace ridge
