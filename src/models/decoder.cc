#include "models/decoder.h"

#include <cmath>

#include "models/blocks.h"

namespace ridge {

namespace {

struct Layer : DecoderLayer {
  Tensor q_norm, k_norm;
  MatrixGroup qkv;
};

class Decoder final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(std::unique_ptr<WeightStore> weights,
                                             const DecoderTraits& traits);
  const DecoderConfig& config() const override { return config_; }
  std::vector<KvShape> kv_shapes() const override {
    return std::vector<KvShape>(static_cast<size_t>(config_.layers), {config_.kv_heads, config_.head_dim, 0});
  }
  uint64_t rope_hash() const override { return rope_.hash(); }
  void write_step(StepPlan& plan, const BatchShape& batch, const KvPages& kv,
                  const StepFormats& formats) const override;

 private:
  Status load_layer(WeightStore& w, int64_t index);
  DecoderTraits traits_;
  DecoderConfig config_;
  RopeTable rope_;
  std::vector<Layer> layers_;
  DecoderEnds ends_;
  Tensor frequencies_;
};

Status Decoder::load_layer(WeightStore& w, int64_t index) {
  const DecoderConfig& c = config_;
  const int64_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  const std::string at = text("blk.", index, ".");
  Layer l;
  RIDGE_TRY(load_decoder_layer(w, c, index, &l));
  if (traits_.qk_norm) {
    RIDGE_ASSIGN(l.q_norm, w.vector(at + "attn_q_norm.weight", c.head_dim));
    RIDGE_ASSIGN(l.k_norm, w.vector(at + "attn_k_norm.weight", c.head_dim));
  }
  RIDGE_ASSIGN(l.qkv, w.matrices({{at + "attn_q.weight", q_width},
                                  {at + "attn_k.weight", kv_width},
                                  {at + "attn_v.weight", kv_width}},
                                 c.hidden));
  layers_.push_back(std::move(l));
  return {};
}

Result<std::unique_ptr<Model>> Decoder::load(std::unique_ptr<WeightStore> w, const DecoderTraits& traits) {
  auto model = std::make_unique<Decoder>();
  model->traits_ = traits;
  DecoderConfig& c = model->config_;
  RIDGE_ASSIGN(c, read_decoder_config(w->file()));
  const std::string window = c.architecture + ".attention.sliding_window";
  RIDGE_ASSIGN(const auto tokens, w->file().find_i64(window));
  if (tokens && *tokens > 0 && *tokens < c.context)
    return declined(w->file().path(), ": ", window, " is ", *tokens, ", the context ", c.context,
                    ": windows of this architecture are not supported");
  RIDGE_ASSIGN(model->rope_, rope_table(w->file(), c.rope));
  if (w->has("rope_freqs.weight")) {
    // Decoder 3's scaling as GGUF files carry it: a divisor for each pair.
    RIDGE_ASSIGN(const auto divisors, w->values("rope_freqs.weight", c.rope.rotary_dim / 2));
    for (size_t i = 0; i < divisors.size(); ++i) {
      const float divisor = divisors[i];
      if (!(divisor > 0) || std::isinf(divisor))
        return corrupt(w->file().path(), ": rope_freqs.weight ", i, " is ", divisor, ", needs to be above 0");
      model->rope_.frequencies[i] /= divisor;
    }
  }
  RIDGE_ASSIGN(model->frequencies_, w->constant("rope frequencies", model->rope_.frequencies));
  RIDGE_ASSIGN(model->ends_, load_ends(*w, c));
  for (int64_t i = 0; i < c.layers; ++i) RIDGE_TRY(model->load_layer(*w, i));
  model->weights_ = std::move(w);
  return {std::move(model)};
}

void Decoder::write_step(StepPlan& plan, const BatchShape& batch, const KvPages& kv,
                         const StepFormats& formats) const {
  StepWriter step(plan, batch, kv, formats);
  Tensor x = step.embed("embedding", ends_.embedding, 1);
  for (int64_t i = 0; i < config_.layers; ++i) {
    const Layer& l = layers_[static_cast<size_t>(i)];
    Activations in = step.norm_input(in_layer(i, "attention norm"), x, l.attention_norm, config_.epsilon);
    // Heads are normalised as rows, which parts of one output are not.
    auto qkv = step.linears({in_layer(i, "q"), in_layer(i, "k"), in_layer(i, "v")}, in_layer(i, "qkv"), in,
                            l.qkv, !traits_.qk_norm);
    Tensor q = qkv[0], k = qkv[1];
    if (traits_.qk_norm) {
      q = step.head_norm(in_layer(i, "q norm"), q, l.q_norm, config_.epsilon);
      k = step.head_norm(in_layer(i, "k norm"), k, l.k_norm, config_.epsilon);
    }
    AttentionSpec spec;
    spec.layer = i, spec.heads = config_.heads, spec.kv_heads = config_.kv_heads,
    spec.head_dim = config_.head_dim;
    spec.scale = 1 / std::sqrt(static_cast<float>(config_.head_dim));
    spec.frequencies = frequencies_, spec.rope_magnitude = rope_.magnitude,
    spec.interleaved = traits_.interleaved;
    Activations mixed = step.activations(step.attention(in_layer(i, "attention"), q, k, qkv[2], spec));
    x = step.add(in_layer(i, "attention residual"), x, step.linear(in_layer(i, "o"), mixed, l.o));
    Activations mlp = step.norm_input(in_layer(i, "mlp norm"), x, l.mlp_norm, config_.epsilon);
    const auto halves =
        step.linears({in_layer(i, "gate"), in_layer(i, "up")}, in_layer(i, "gate_up"), mlp, l.gate_up, false);
    Activations inner = step.activations(step.silu_mul(in_layer(i, "silu_mul"), halves[0], halves[1]));
    x = step.add(in_layer(i, "mlp residual"), x, step.linear(in_layer(i, "down"), inner, l.down));
  }
  step.logits(x, ends_.norm, config_.epsilon, ends_.head);
}

}  // namespace

Result<DecoderEnds> load_ends(WeightStore& w, const DecoderConfig& c) {
  DecoderEnds ends;
  RIDGE_ASSIGN(ends.embedding, w.matrix("token_embd.weight", c.vocab, c.hidden));
  RIDGE_ASSIGN(ends.norm, w.vector("output_norm.weight", c.hidden));
  ends.head = ends.embedding;
  if (w.has("output.weight")) {
    RIDGE_ASSIGN(ends.head, w.matrix("output.weight", c.vocab, c.hidden));
  }
  return ends;
}

Status load_decoder_layer(WeightStore& w, const DecoderConfig& c, int64_t index, DecoderLayer* l) {
  const std::string at = text("blk.", index, ".");
  RIDGE_ASSIGN(l->attention_norm, w.vector(at + "attn_norm.weight", c.hidden));
  RIDGE_ASSIGN(l->o, w.matrix(at + "attn_output.weight", c.hidden, c.heads * c.head_dim));
  RIDGE_ASSIGN(l->mlp_norm, w.vector(at + "ffn_norm.weight", c.hidden));
  RIDGE_ASSIGN(l->gate_up,
               w.matrices({{at + "ffn_gate.weight", c.inner}, {at + "ffn_up.weight", c.inner}}, c.hidden));
  RIDGE_ASSIGN(l->down, w.matrix(at + "ffn_down.weight", c.hidden, c.inner));
  return {};
}

Result<std::unique_ptr<Model>> load_decoder(std::unique_ptr<WeightStore> weights,
                                            const DecoderTraits& traits) {
  return Decoder::load(std::move(weights), traits);
}

}  // namespace ridge
