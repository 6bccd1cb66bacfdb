// Gemma 3: sandwich norms, QK-norm, five sliding-window layers to one global, each kind with its own rotary
// base, GeGLU, embeddings scaled by sqrt(hidden). Source: Gemma Team 2025, "Gemma 3 technical report". The
// GGUF form stores norm weights with their 1 added, and Q and K rows in half-split order.

#include <cmath>

#include "models/blocks.h"
#include "models/decoder.h"

namespace ridge {

namespace {

// The architecture's own constants, used where the file has no key for them.
constexpr int64_t kWindowPattern = 6;  // every sixth layer is global
constexpr float kLocalRopeBase = 10000.0f;

struct Gemma3Layer : DecoderLayer {
  Tensor q, k, v, q_norm, k_norm, post_attention_norm, post_mlp_norm;
  bool local = false;
};

class Gemma3 final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(std::unique_ptr<WeightStore> weights);
  const DecoderConfig& config() const override { return config_; }
  std::vector<KvShape> kv_shapes() const override {
    std::vector<KvShape> shapes;
    for (const Gemma3Layer& l : layers_)
      shapes.push_back({config_.kv_heads, config_.head_dim, l.local ? window_ : 0});
    return shapes;
  }
  uint64_t rope_hash() const override { return global_rope_.hash() * 31 + local_rope_.hash(); }
  void write_step(StepPlan& plan, const BatchShape& batch, const KvPages& kv,
                  const StepFormats& formats) const override;

 private:
  Status load_layers(WeightStore& w, int64_t pattern);
  DecoderConfig config_;
  int64_t window_ = 0;
  RopeTable global_rope_, local_rope_;
  std::vector<Gemma3Layer> layers_;
  DecoderEnds ends_;
  Tensor global_frequencies_, local_frequencies_;
};

Status Gemma3::load_layers(WeightStore& w, int64_t pattern) {
  const DecoderConfig& c = config_;
  const int64_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = text("blk.", i, ".");
    Gemma3Layer l;
    l.local = (i + 1) % pattern != 0;
    RIDGE_TRY(load_decoder_layer(w, c, i, &l));
    RIDGE_ASSIGN(l.q, w.matrix(at + "attn_q.weight", q_width, c.hidden));
    RIDGE_ASSIGN(l.k, w.matrix(at + "attn_k.weight", kv_width, c.hidden));
    RIDGE_ASSIGN(l.v, w.matrix(at + "attn_v.weight", kv_width, c.hidden));
    RIDGE_ASSIGN(l.q_norm, w.vector(at + "attn_q_norm.weight", c.head_dim));
    RIDGE_ASSIGN(l.k_norm, w.vector(at + "attn_k_norm.weight", c.head_dim));
    RIDGE_ASSIGN(l.post_attention_norm, w.vector(at + "post_attention_norm.weight", c.hidden));
    RIDGE_ASSIGN(l.post_mlp_norm, w.vector(at + "post_ffw_norm.weight", c.hidden));
    layers_.push_back(l);
  }
  return {};
}

Result<std::unique_ptr<Model>> Gemma3::load(std::unique_ptr<WeightStore> w) {
  auto model = std::make_unique<Gemma3>();
  DecoderConfig& c = model->config_;
  const GgufFile& file = w->file();
  RIDGE_ASSIGN(c, read_decoder_config(file));
  RIDGE_ASSIGN(model->window_, file.get_i64("gemma3.attention.sliding_window"));
  if (model->window_ < 1)
    return corrupt(file.path(), ": gemma3.attention.sliding_window is ", model->window_, ", needs 1 or more");
  RIDGE_ASSIGN(const auto pattern, file.find_i64("gemma3.attention.sliding_window_pattern"));
  if (pattern && *pattern < 1)
    return corrupt(file.path(), ": gemma3.attention.sliding_window_pattern is ", *pattern);
  RIDGE_ASSIGN(model->global_rope_, rope_table(file, c.rope));
  RopeConfig local;
  RIDGE_ASSIGN(const auto base, file.find_f32("gemma3.rope.freq_base_swa"));
  local.base = base.value_or(kLocalRopeBase), local.rotary_dim = c.rope.rotary_dim;
  RIDGE_ASSIGN(model->local_rope_, rope_table(file, local));
  RIDGE_ASSIGN(model->global_frequencies_, w->constant("rope frequencies", model->global_rope_.frequencies));
  RIDGE_ASSIGN(model->local_frequencies_,
               w->constant("rope frequencies of windows", model->local_rope_.frequencies));
  RIDGE_ASSIGN(model->ends_, load_ends(*w, c));
  RIDGE_TRY(model->load_layers(*w, pattern.value_or(kWindowPattern)));
  model->weights_ = std::move(w);
  return {std::move(model)};
}

void Gemma3::write_step(StepPlan& plan, const BatchShape& batch, const KvPages& kv,
                        const StepFormats& formats) const {
  StepWriter step(plan, batch, kv, formats);
  const float epsilon = config_.epsilon;
  Tensor x = step.embed("embedding", ends_.embedding, std::sqrt(static_cast<float>(config_.hidden)));
  for (int64_t i = 0; i < config_.layers; ++i) {
    const Gemma3Layer& l = layers_[static_cast<size_t>(i)];
    Activations in = step.norm_input(in_layer(i, "attention norm"), x, l.attention_norm, epsilon);
    Tensor q = step.linear(in_layer(i, "q"), in, l.q), k = step.linear(in_layer(i, "k"), in, l.k);
    const Tensor v = step.linear(in_layer(i, "v"), in, l.v);
    q = step.head_norm(in_layer(i, "q norm"), q, l.q_norm, epsilon);
    k = step.head_norm(in_layer(i, "k norm"), k, l.k_norm, epsilon);
    AttentionSpec spec;
    spec.layer = i, spec.heads = config_.heads, spec.kv_heads = config_.kv_heads,
    spec.head_dim = config_.head_dim;
    spec.scale = 1 / std::sqrt(static_cast<float>(config_.head_dim));
    spec.window = l.local ? window_ : 0;
    spec.frequencies = l.local ? local_frequencies_ : global_frequencies_;
    spec.rope_magnitude = (l.local ? local_rope_ : global_rope_).magnitude;
    Activations mixed = step.activations(step.attention(in_layer(i, "attention"), q, k, v, spec));
    const Tensor o = step.linear(in_layer(i, "o"), mixed, l.o);
    x = step.add(in_layer(i, "attention residual"), x,
                 step.rms_norm(in_layer(i, "post attention norm"), o, l.post_attention_norm, epsilon));
    Activations mlp = step.norm_input(in_layer(i, "mlp norm"), x, l.mlp_norm, epsilon);
    const auto halves =
        step.linears({in_layer(i, "gate"), in_layer(i, "up")}, in_layer(i, "gate_up"), mlp, l.gate_up, false);
    Activations inner = step.activations(step.gelu_mul(in_layer(i, "gelu_mul"), halves[0], halves[1]));
    const Tensor down = step.linear(in_layer(i, "down"), inner, l.down);
    x = step.add(in_layer(i, "mlp residual"), x,
                 step.rms_norm(in_layer(i, "post mlp norm"), down, l.post_mlp_norm, epsilon));
  }
  step.logits(x, ends_.norm, epsilon, ends_.head);
}

}  // namespace

Result<std::unique_ptr<Model>> load_gemma3(std::unique_ptr<WeightStore> weights) {
  return Gemma3::load(std::move(weights));
}

}  // namespace ridge
