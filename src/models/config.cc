#include "models/config.h"

#include <charconv>

namespace ridge {

namespace {

/// A positive integer of the architecture's namespace, at most `limit`.
Result<int64_t> positive(const GgufFile& file, const std::string& key, int64_t limit) {
  RIDGE_ASSIGN(const int64_t v, file.get_i64(key));
  if (v < 1 || v > limit) return corrupt(file.path(), ": ", key, " is ", v, ", needs 1 to ", limit);
  return v;
}
Result<int64_t> positive_or(const GgufFile& file, const std::string& key, int64_t limit, int64_t otherwise) {
  if (!file.has(key)) return otherwise;
  return positive(file, key, limit);
}

/// The vocabulary's size: the token list decides, and a key that says otherwise is a contradiction.
Result<int64_t> vocabulary(const GgufFile& file, const std::string& prefix) {
  const GgufEntry* tokens = file.entry("tokenizer.ggml.tokens");
  if (tokens == nullptr) return positive(file, prefix + "vocab_size", limits::kVocabulary);
  const auto count = static_cast<int64_t>(tokens->count);
  RIDGE_ASSIGN(const int64_t said, positive_or(file, prefix + "vocab_size", limits::kVocabulary, count));
  if (said != count)
    return corrupt(file.path(), ": ", prefix, "vocab_size is ", said, ", but tokenizer.ggml.tokens has ",
                   count, " entries");
  if (count < 1) return corrupt(file.path(), ": tokenizer.ggml.tokens is empty");
  return count;
}

/// A tensor "blk.N.…" whose layer the file says it has not got.
Status check_layers(const GgufFile& file, const std::string& key, int64_t layers) {
  for (const GgufTensor& t : file.tensors()) {
    constexpr std::string_view kBlock = "blk.";
    if (t.name.substr(0, kBlock.size()) != kBlock) continue;
    const std::string_view rest = t.name.substr(kBlock.size());
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    if (error == std::errc() && end != rest.data() + rest.size() && *end == '.' && layer >= 0 &&
        layer < layers)
      continue;
    return corrupt(file.path(), ": tensor ", printable(t.name), " is of no layer: ", key, " is ", layers,
                   ", so layers are 0 to ", layers - 1);
  }
  return {};
}

/// Keys that change what a model computes, and that no architecture here takes into account: any but the
/// neutral value would be answered wrongly.
Status check_arithmetic(const GgufFile& file, const std::string& prefix) {
  for (const char* key : {"expert_count", "expert_used_count"}) {
    RIDGE_ASSIGN(const auto experts, file.find_i64(prefix + key));
    if (experts && *experts != 0)
      return declined(file.path(), ": ", prefix, key, " is ", *experts,
                      ": mixtures of experts are not supported");
  }
  constexpr std::pair<const char*, float> kNeutral[] = {
      {"attn_logit_softcapping", 0.0f},  {"final_logit_softcapping", 0.0f},
      {"attention.clamp_kqv", 0.0f},     {"attention.max_alibi_bias", 0.0f},
      {"attention.scale", 0.0f},         {"logit_scale", 1.0f},
      {"embedding_scale", 1.0f},         {"residual_scale", 1.0f},
      {"rope.scaling.attn_factor", 1.0f}};
  for (const auto& [key, neutral] : kNeutral) {
    RIDGE_ASSIGN(const auto value, file.find_f32(prefix + key));
    if (value && *value != neutral && *value != 0)
      return declined(file.path(), ": ", prefix, key, " is ", *value, ": not supported");
  }
  return {};
}

Status read_rope(const GgufFile& file, const std::string& prefix, DecoderConfig* c) {
  RIDGE_ASSIGN(const auto base, file.find_f32(prefix + "rope.freq_base"));
  RIDGE_ASSIGN(const auto type, file.find_string(prefix + "rope.scaling.type"));
  RIDGE_ASSIGN(const auto factor, file.find_f32(prefix + "rope.scaling.factor"));
  RIDGE_ASSIGN(const auto original, file.find_i64(prefix + "rope.scaling.original_context_length"));
  RIDGE_ASSIGN(const int64_t rotary,
               positive_or(file, prefix + "rope.dimension_count", c->head_dim, c->head_dim));
  if (rotary % 2 != 0)
    return corrupt(file.path(), ": ", prefix, "rope.dimension_count is ", rotary, ", needs to be even");
  c->rope.rotary_dim = rotary;
  c->rope.base = base.value_or(10000.0f);
  if (!(c->rope.base > 1))
    return corrupt(file.path(), ": ", prefix, "rope.freq_base is ", c->rope.base, ", needs to be above 1");
  c->rope.context = c->context;
  if (type) c->rope.type = *type;
  if (factor) c->rope.factor = *factor;
  if (original) c->rope.original = *original;
  return {};
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const GgufFile& file) {
  DecoderConfig c;
  RIDGE_ASSIGN(const std::string_view architecture, file.get_string("general.architecture"));
  c.architecture = architecture;
  const std::string prefix = c.architecture + ".";
  RIDGE_ASSIGN(c.layers, positive(file, prefix + "block_count", limits::kModelLayers));
  RIDGE_ASSIGN(c.hidden, positive(file, prefix + "embedding_length", limits::kModelWidth));
  RIDGE_ASSIGN(c.heads, positive(file, prefix + "attention.head_count", limits::kModelWidth));
  RIDGE_ASSIGN(c.kv_heads,
               positive_or(file, prefix + "attention.head_count_kv", limits::kModelWidth, c.heads));
  if (c.heads % c.kv_heads != 0)
    return corrupt(file.path(), ": attention.head_count is ", c.heads, ", which attention.head_count_kv ",
                   c.kv_heads, " does not divide");
  if (!file.has(prefix + "attention.key_length") && c.hidden % c.heads != 0)
    return corrupt(file.path(), ": embedding_length ", c.hidden,
                   " is not a multiple of attention.head_count ", c.heads,
                   ", and there is no attention.key_length");
  RIDGE_ASSIGN(c.head_dim,
               positive_or(file, prefix + "attention.key_length", limits::kModelWidth, c.hidden / c.heads));
  RIDGE_ASSIGN(const int64_t value_dim,
               positive_or(file, prefix + "attention.value_length", limits::kModelWidth, c.head_dim));
  if (value_dim != c.head_dim)
    return declined(file.path(), ": attention.value_length ", value_dim, " differs from key_length ",
                    c.head_dim, ": not supported");
  if (c.heads * c.head_dim > limits::kModelWidth)
    return corrupt(file.path(), ": ", c.heads, " heads of ", c.head_dim, " exceed ", limits::kModelWidth);
  RIDGE_ASSIGN(c.inner, positive(file, prefix + "feed_forward_length", limits::kModelWidth));
  RIDGE_ASSIGN(c.context, positive(file, prefix + "context_length", limits::kModelContext));
  RIDGE_ASSIGN(c.vocab, vocabulary(file, prefix));
  RIDGE_ASSIGN(c.epsilon, file.get_f32(prefix + "attention.layer_norm_rms_epsilon"));
  if (!(c.epsilon >= 0))
    return corrupt(file.path(), ": ", prefix, "attention.layer_norm_rms_epsilon is ", c.epsilon,
                   ", needs at least 0");
  RIDGE_TRY(check_arithmetic(file, prefix));
  RIDGE_TRY(check_layers(file, prefix + "block_count", c.layers));
  RIDGE_TRY(read_rope(file, prefix, &c));
  return c;
}

Result<RopeTable> rope_table(const GgufFile& file, const RopeConfig& config) {
  auto table = rope_frequencies(config);
  if (table.ok()) return table;
  return corrupt(file.path(), ": rope.scaling and rope.freq_base: ", table.status().message());
}

}  // namespace ridge
