// Llama: RMSNorm, rotary GQA attention, SwiGLU. Source: Touvron et al. 2023; the GGUF form stores Q and K
// rows so that rotary pairs are neighbours (interleaved).

#include <cmath>

#include "models/blocks.h"

namespace ridge {

namespace {

struct Layer {
  Tensor attention_norm, q, k, v, o, mlp_norm, gate, up, down;
};

class Llama final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(std::unique_ptr<WeightStore> weights);
  const DecoderConfig& config() const override { return config_; }
  std::vector<KvShape> kv_shapes() const override {
    return std::vector<KvShape>(static_cast<size_t>(config_.layers), {config_.kv_heads, config_.head_dim, 0});
  }
  uint64_t rope_hash() const override { return rope_.hash(); }
  void write_step(StepPlan& plan, const BatchShape& batch, const KvPages& kv,
                  const StepFormats& formats) const override;

 private:
  DecoderConfig config_;
  RopeTable rope_;
  std::vector<Layer> layers_;
  Tensor embedding_, norm_, head_;
};

Result<std::unique_ptr<Model>> Llama::load(std::unique_ptr<WeightStore> w) {
  auto model = std::make_unique<Llama>();
  DecoderConfig& c = model->config_;
  RIDGE_ASSIGN(c, read_decoder_config(w->file()));
  RIDGE_ASSIGN(model->rope_, rope_table(w->file(), c.rope));
  if (w->has("rope_freqs.weight")) {
    // Llama 3's scaling as GGUF files carry it: a divisor for each pair.
    RIDGE_ASSIGN(const Tensor divisors, w->vector("rope_freqs.weight", c.rope.rotary_dim / 2));
    for (int64_t i = 0; i < divisors.dim(0); ++i) {
      const auto divisor = static_cast<float>(divisors.f64(i));
      if (!(divisor > 0) || std::isinf(divisor))
        return corrupt(w->file().path(), ": rope_freqs.weight ", i, " is ", divisor, ", needs to be above 0");
      model->rope_.frequencies[static_cast<size_t>(i)] /= divisor;
    }
  }
  const int64_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  RIDGE_ASSIGN(model->embedding_, w->matrix("token_embd.weight", c.vocab, c.hidden));
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = text("blk.", i, ".");
    Layer l;
    RIDGE_ASSIGN(l.attention_norm, w->vector(at + "attn_norm.weight", c.hidden));
    RIDGE_ASSIGN(l.q, w->matrix(at + "attn_q.weight", q_width, c.hidden));
    RIDGE_ASSIGN(l.k, w->matrix(at + "attn_k.weight", kv_width, c.hidden));
    RIDGE_ASSIGN(l.v, w->matrix(at + "attn_v.weight", kv_width, c.hidden));
    RIDGE_ASSIGN(l.o, w->matrix(at + "attn_output.weight", c.hidden, q_width));
    RIDGE_ASSIGN(l.mlp_norm, w->vector(at + "ffn_norm.weight", c.hidden));
    RIDGE_ASSIGN(l.gate, w->matrix(at + "ffn_gate.weight", c.inner, c.hidden));
    RIDGE_ASSIGN(l.up, w->matrix(at + "ffn_up.weight", c.inner, c.hidden));
    RIDGE_ASSIGN(l.down, w->matrix(at + "ffn_down.weight", c.hidden, c.inner));
    model->layers_.push_back(l);
  }
  RIDGE_ASSIGN(model->norm_, w->vector("output_norm.weight", c.hidden));
  model->head_ = model->embedding_;
  if (w->has("output.weight")) {
    RIDGE_ASSIGN(model->head_, w->matrix("output.weight", c.vocab, c.hidden));
  }
  model->weights_ = std::move(w);
  return {std::move(model)};
}

void Llama::write_step(StepPlan& plan, const BatchShape& batch, const KvPages& kv,
                       const StepFormats& formats) const {
  StepWriter step(plan, batch, kv, formats);
  Tensor x = step.embed("embedding", embedding_, 1);
  for (int64_t i = 0; i < config_.layers; ++i) {
    const Layer& l = layers_[static_cast<size_t>(i)];
    Activations in =
        step.activations(step.rms_norm(in_layer(i, "attention norm"), x, l.attention_norm, config_.epsilon));
    const Tensor q = step.linear(in_layer(i, "q"), in, l.q), k = step.linear(in_layer(i, "k"), in, l.k);
    const Tensor v = step.linear(in_layer(i, "v"), in, l.v);
    AttentionSpec spec;
    spec.layer = i, spec.heads = config_.heads, spec.kv_heads = config_.kv_heads,
    spec.head_dim = config_.head_dim;
    spec.scale = 1 / std::sqrt(static_cast<float>(config_.head_dim));
    spec.frequencies = frequencies_of(rope_), spec.rope_magnitude = rope_.magnitude, spec.interleaved = true;
    Activations mixed = step.activations(step.attention(in_layer(i, "attention"), q, k, v, spec));
    x = step.add(in_layer(i, "attention residual"), x, step.linear(in_layer(i, "o"), mixed, l.o));
    Activations mlp =
        step.activations(step.rms_norm(in_layer(i, "mlp norm"), x, l.mlp_norm, config_.epsilon));
    const Tensor gate = step.linear(in_layer(i, "gate"), mlp, l.gate),
                 up = step.linear(in_layer(i, "up"), mlp, l.up);
    Activations inner = step.activations(step.silu_mul(in_layer(i, "silu_mul"), gate, up));
    x = step.add(in_layer(i, "mlp residual"), x, step.linear(in_layer(i, "down"), inner, l.down));
  }
  step.logits(x, norm_, config_.epsilon, head_);
}

}  // namespace

Result<std::unique_ptr<Model>> load_llama(std::unique_ptr<WeightStore> weights) {
  return Llama::load(std::move(weights));
}

}  // namespace ridge
