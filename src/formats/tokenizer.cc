#include "formats/tokenizer.h"

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/sha256.h"
#include "formats/tokenizer_state.h"

namespace ridge {

using tokenizer::State;

namespace {

Status check_sizes(const TokenizerSpec& spec) {
  const auto vocab = static_cast<int64_t>(spec.tokens.size());
  if (vocab == 0) return corrupt("tokenizer.ggml.tokens is missing or empty");
  if (vocab > limits::kVocabulary)
    return resource_exhausted("tokenizer.ggml.tokens has ", vocab, " entries, the limit is ",
                              limits::kVocabulary);
  for (int64_t i = 0; i < vocab; ++i)
    if (static_cast<int64_t>(spec.tokens[i].size()) > limits::kPieceBytes)
      return corrupt("tokenizer.ggml.tokens[", i, "] has ", spec.tokens[i].size(), " bytes, the limit is ",
                     limits::kPieceBytes);
  const bool llama = spec.model == "llama";
  if (llama && static_cast<int64_t>(spec.scores.size()) != vocab)
    return corrupt("tokenizer.ggml.scores has ", spec.scores.size(), " entries, tokenizer.ggml.tokens has ",
                   vocab);
  if ((llama || !spec.types.empty()) && static_cast<int64_t>(spec.types.size()) != vocab)
    return corrupt("tokenizer.ggml.token_type has ", spec.types.size(),
                   " entries, tokenizer.ggml.tokens has ", vocab);
  if (static_cast<int64_t>(spec.merges.size()) > limits::kVocabulary)
    return resource_exhausted("tokenizer.ggml.merges has ", spec.merges.size(), " entries, the limit is ",
                              limits::kVocabulary);
  return {};
}

Status check_ids(const TokenizerSpec& spec) {
  const struct {
    const char* name;
    int64_t id;
  } named[] = {{"bos", spec.bos}, {"eos", spec.eos},     {"eot", spec.eot},
               {"eom", spec.eom}, {"unknown", spec.unk}, {"padding", spec.pad}};
  const auto vocab = static_cast<int64_t>(spec.tokens.size());
  for (const auto& n : named)
    if (n.id < -1 || n.id >= vocab)
      return corrupt("tokenizer.ggml.", n.name, "_token_id is ", n.id, ", the vocabulary has ", vocab,
                     " tokens");
  if (spec.add_bos && spec.bos < 0)
    return corrupt("tokenizer.ggml.add_bos_token is true without a tokenizer.ggml.bos_token_id");
  if (spec.add_eos && spec.eos < 0)
    return corrupt("tokenizer.ggml.add_eos_token is true without a tokenizer.ggml.eos_token_id");
  for (const AddedTokenRule& r : spec.rules)
    if (r.id < 0 || r.id >= vocab)
      return corrupt("an added token has the id ", r.id, ", the vocabulary has ", vocab, " tokens");
  return {};
}

Status read_types(const TokenizerSpec& spec, std::vector<TokenType>& types) {
  types.assign(spec.tokens.size(), TokenType::kNormal);
  for (size_t i = 0; i < spec.types.size(); ++i) {
    if (spec.types[i] < 1 || spec.types[i] > 6)
      return corrupt("tokenizer.ggml.token_type[", i, "] is ", spec.types[i], ", known are 1 to 6");
    types[i] = static_cast<TokenType>(spec.types[i]);
  }
  return {};
}

// Length before content, so that no two specs give the same bytes.
std::string fingerprint(const TokenizerSpec& spec) {
  Sha256 hash;
  std::string block;
  const auto number = [&](uint64_t v) { block.append(reinterpret_cast<const char*>(&v), sizeof v); };
  const auto word = [&](std::string_view s) {
    number(s.size());
    block += s;
    if (block.size() > 1 << 16) {
      hash.update(block);
      block.clear();
    }
  };
  word(spec.model);
  word(spec.pre);
  number(spec.tokens.size());
  for (const std::string& t : spec.tokens) word(t);
  number(spec.merges.size());
  for (const std::string& m : spec.merges) word(m);
  word({reinterpret_cast<const char*>(spec.scores.data()), spec.scores.size() * sizeof(float)});
  word({reinterpret_cast<const char*>(spec.types.data()), spec.types.size() * sizeof(int32_t)});
  for (const AddedTokenRule& r : spec.rules)
    number(static_cast<uint64_t>(r.id) << 3 | r.lstrip << 2 | r.rstrip << 1 | r.single_word);
  for (const int64_t id : {spec.bos, spec.eos, spec.eot, spec.eom, spec.unk, spec.pad})
    number(static_cast<uint64_t>(id));
  number(spec.add_bos << 2 | spec.add_eos << 1 | spec.add_space_prefix);
  hash.update(block);
  return sha256_hex(hash);
}

Result<std::unique_ptr<tokenizer::Model>> make_model(TokenizerSpec& spec, const TokenizerOptions& options,
                                                     tokenizer::Vocabulary& vocabulary) {
  if (spec.model == "llama") {
    if (!options.assume_pre.empty())
      return invalid_argument("--assume-pre ", printable(options.assume_pre),
                              ": tokenizer.ggml.model is 'llama', which has no pre-tokenizer: leave it out");
    spec.pre.clear();
    return tokenizer::make_spm(spec, vocabulary);
  }
  if (spec.model != "gpt2")
    return declined("tokenizer.ggml.model is ", printable(spec.model), ", known are gpt2 and llama");
  if (!options.assume_pre.empty()) {
    if (options.assume_pre != spec.pre && tokenizer::split_by_name(spec.pre))
      return invalid_argument("--assume-pre ", printable(options.assume_pre), ": tokenizer.ggml.pre is ",
                              printable(spec.pre), ", which is known: leave it out");
    if (!tokenizer::split_by_name(options.assume_pre))
      return invalid_argument("--assume-pre is ", printable(options.assume_pre), ": use ",
                              tokenizer::split_names());
    spec.pre = options.assume_pre;
  }
  const auto split = tokenizer::split_by_name(spec.pre);
  if (!split) {
    const std::string found = spec.pre.empty() ? "missing" : printable(spec.pre);
    return declined("the pre-tokenizer tokenizer.ggml.pre is ", found, ", known are ",
                    tokenizer::split_names(),
                    ": give the one that the model was trained with as --assume-pre NAME");
  }
  return tokenizer::make_bpe(spec, *split, vocabulary);
}

void mark_ends(const TokenizerSpec& spec, State& state) {
  for (const int64_t id : {spec.eos, spec.eot, spec.eom})
    if (id >= 0) state.ends.push_back(static_cast<int32_t>(id));
  // Files that were converted early name only one end; these are the turn ends of ChatML, Llama 3 and Gemma.
  for (const char* text : {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>"}) {
    const auto found = state.written.find(text);
    if (found != state.written.end() && state.vocabulary.types[found->second] == TokenType::kControl)
      state.ends.push_back(found->second);
  }
}

Status add_written(const TokenizerSpec& spec, State& state) {
  const auto& types = state.vocabulary.types;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const bool user = types[i] == TokenType::kUserDefined;
    if (!user && types[i] != TokenType::kControl) continue;
    state.all.add(state.vocabulary.pieces[i], id, user);
    if (user) state.user_defined.add(state.vocabulary.pieces[i], id, true);
    state.written.emplace(state.vocabulary.pieces[i], id);
  }
  RIDGE_TRY(state.all.finish());
  RIDGE_TRY(state.user_defined.finish());
  for (const AddedTokenRule& r : spec.rules)
    if (r.lstrip || r.rstrip || r.single_word) state.rules[r.id] = r;
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::make(TokenizerSpec spec, const TokenizerOptions& options) {
  RIDGE_TRY(check_sizes(spec));
  RIDGE_TRY(check_ids(spec));
  auto state = std::make_shared<State>();
  RIDGE_TRY(read_types(spec, state->vocabulary.types));
  size_t bytes = 0;
  for (const std::string& t : spec.tokens) bytes += t.size();
  state->vocabulary.pieces.reserve(spec.tokens.size(), bytes);
  RIDGE_ASSIGN(state->model, make_model(spec, options, state->vocabulary));
  state->spaces_written = spec.model == "llama";
  state->space_prefix = state->spaces_written && spec.add_space_prefix;
  RIDGE_TRY(add_written(spec, *state));
  mark_ends(spec, *state);
  state->hash = fingerprint(spec);
  state->pre = spec.pre;
  state->bos = static_cast<int32_t>(spec.bos);
  state->eos = static_cast<int32_t>(spec.eos);
  state->unk = static_cast<int32_t>(spec.unk);
  state->pad = static_cast<int32_t>(spec.pad);
  state->add_bos = spec.add_bos;
  state->add_eos = spec.add_eos;
  return Tokenizer(std::move(state));
}

std::string_view Tokenizer::piece(int32_t id) const {
  return id >= 0 && id < vocab() ? state_->vocabulary.pieces[id] : std::string_view();
}

TokenType Tokenizer::type(int32_t id) const {
  return id >= 0 && id < vocab() ? state_->vocabulary.types[id] : TokenType::kUnknown;
}

int32_t Tokenizer::find(std::string_view text) const {
  const auto found = state_->written.find(text);
  return found == state_->written.end() ? -1 : found->second;
}

int64_t Tokenizer::vocab() const {
  return static_cast<int64_t>(state_->vocabulary.types.size());
}
int32_t Tokenizer::bos() const {
  return state_->bos;
}
int32_t Tokenizer::eos() const {
  return state_->eos;
}
int32_t Tokenizer::unk() const {
  return state_->unk;
}
int32_t Tokenizer::pad() const {
  return state_->pad;
}
bool Tokenizer::add_bos() const {
  return state_->add_bos;
}
bool Tokenizer::add_eos() const {
  return state_->add_eos;
}
const std::string& Tokenizer::hash() const {
  return state_->hash;
}
const std::string& Tokenizer::pre() const {
  return state_->pre;
}

bool Tokenizer::is_end(int32_t id) const {
  return std::find(state_->ends.begin(), state_->ends.end(), id) != state_->ends.end();
}

bool Tokenizer::starts_with_bos(std::string_view text) const {
  const std::string_view bos = piece(state_->bos);
  return !bos.empty() && text.substr(0, bos.size()) == bos;
}

}  // namespace ridge
