#include "models/blocks.h"

#include "base/checked.h"
#include "ops/add/add.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/cast/cast.h"
#include "ops/embedding/embedding.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/gelu_mul/gelu_mul.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/quantize_rows/quantize_rows.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/silu_mul/silu_mul.h"

namespace ridge {

std::string in_layer(int64_t layer, const char* what) {
  return text("layer ", layer, " ", what);
}

namespace {
Tensor reshaped(const Tensor& t, const Shape& shape) {
  return Tensor(t.data, t.dtype, shape);
}
/// [tokens, heads * head_dim] as [tokens, heads, head_dim]; rows may have gaps between them.
Tensor as_heads(const Tensor& t, int64_t heads, int64_t head_dim) {
  Tensor out(t.data, t.dtype, {t.dim(0), heads, head_dim});
  out.strides[0] = t.stride(0);
  return out;
}
std::string windowed(const char* name, int64_t window) {
  return window > 0 ? text(name, "_window_", window) : name;
}
}  // namespace

StepWriter::StepWriter(StepPlan& plan, const BatchShape& batch, const KvPages& kv, const StepFormats& formats)
    : plan_(plan), batch_(batch), kv_(kv), formats_(formats) {
  const int64_t tokens = batch.tokens();
  // The engine may have put calls before the model's that make the ids.
  ids_ = plan.has("token_ids") ? plan.find("token_ids") : plan.input("token_ids", kI32, {tokens});
  positions_ = plan.input("positions", kI64, {tokens});
  slots_ = plan.input("slots", kI64, {tokens});
  logit_rows_ = plan.input("logit_rows", kI64, {batch.logit_rows});
  if (batch.decodes > 0) {
    plan.input("decode_page_table", kI32, {batch.decodes, kv.max_pages});
    plan.input("decode_lengths", kI64, {batch.decodes});
  }
  if (batch.prefills > 0) {
    plan.input("prefill_page_table", kI32, {batch.prefills, kv.max_pages});
    plan.input("prefill_lengths", kI64, {batch.prefills});
    plan.input("prefill_query_start", kI64, {batch.prefills + 1});
  }
}

Tensor StepWriter::embed(const std::string& label, const Tensor& table, float scale) {
  EmbeddingArgs a;
  a.y = plan_.activation(kF32, {batch_.tokens(), table.dim(1)});
  a.ids = ids_, a.w = table, a.scale = scale;
  plan_.call(label, a);
  return a.y;
}

Tensor StepWriter::rms_norm(const std::string& label, const Tensor& x, const Tensor& w, float epsilon) {
  RmsNormArgs a;
  a.y = plan_.activation(kF32, x.shape);
  a.x = x, a.w = w, a.epsilon = epsilon;
  plan_.call(label, a);
  return a.y;
}

Tensor StepWriter::head_norm(const std::string& label, const Tensor& x, const Tensor& w, float epsilon) {
  const int64_t head_dim = w.dim(0);
  return reshaped(rms_norm(label, reshaped(x, {x.elements() / head_dim, head_dim}), w, epsilon), x.shape);
}

Activations StepWriter::norm_input(const std::string& label, const Tensor& x, const Tensor& w,
                                   float epsilon) {
  RmsNormArgs a;
  a.y = plan_.activation(formats_.activations == ActivationFormat::kBf16 ? kBF16 : kF32, x.shape);
  a.x = x, a.w = w, a.epsilon = epsilon;
  plan_.call(label, a);
  return activations(a.y);
}

std::vector<Tensor> StepWriter::linears(const std::vector<std::string>& labels, const std::string& whole,
                                        Activations& in, const MatrixGroup& group, bool may_join) {
  std::vector<Tensor> out;
  if (!group.whole || !may_join) {
    for (size_t i = 0; i < labels.size(); ++i) out.push_back(linear(labels[i], in, group.parts[i]));
    return out;
  }
  const Tensor y = linear(whole, in, group.whole);
  int64_t column = 0;
  for (const Tensor& w : group.parts) {
    Tensor part(y.as<float>() + column, {y.dim(0), w.dim(0)});
    part.strides[0] = y.dim(1);
    out.push_back(part);
    column += w.dim(0);
  }
  return out;
}

Tensor StepWriter::linear(const std::string& label, Activations& in, const Tensor& w, const Tensor& bias) {
  const Tensor y = plan_.activation(kF32, {in.x.dim(0), w.dim(0)});
  linear_into(label, y, in, w, bias);
  return y;
}

void StepWriter::linear_into(const std::string& label, const Tensor& y, Activations& in, const Tensor& w,
                             const Tensor& bias) {
  LinearArgs a;
  a.y = y, a.w = w, a.bias = bias, a.x = in.x;
  if (formats_.activations == ActivationFormat::kInt8 && is_block_quantized(w.dtype)) {
    if (!in.codes) {
      const int64_t tokens = in.x.dim(0), blocks = ceil_div(in.x.dim(1), 32);
      QuantizeRowsArgs q;
      q.q = plan_.activation(kI8, {tokens, blocks * 32});
      q.scale = plan_.activation(kF32, {tokens, blocks});
      q.x = in.x;
      plan_.call(label + " input", q);
      in.codes = q.q, in.scale = q.scale;
    }
    a.x = in.codes, a.x_scale = in.scale;
  } else if (formats_.activations == ActivationFormat::kBf16 && in.x.dtype == kF32) {
    if (!in.narrow) {
      in.narrow = plan_.activation(kBF16, in.x.shape);
      plan_.call(label + " input", CastArgs{in.narrow, in.x});
    }
    a.x = in.narrow;
  }
  plan_.call(label, a);
}

Tensor StepWriter::attention(const std::string& label, Tensor q, Tensor k, const Tensor& v,
                             const AttentionSpec& spec) {
  const int64_t tokens = batch_.tokens();
  const KvLayer& pages = kv_.layers[static_cast<size_t>(spec.layer)];
  q = as_heads(q, spec.heads, spec.head_dim);
  k = as_heads(k, spec.kv_heads, spec.head_dim);
  for (const Tensor& x : {q, k}) {
    RopeArgs r;
    r.x = x, r.positions = positions_, r.frequencies = spec.frequencies;
    r.interleaved = spec.interleaved, r.magnitude = spec.rope_magnitude, r.settled = true;
    plan_.call(label + (x.data == q.data ? " rope q" : " rope k"), r);
  }
  KvWriteArgs w;
  w.k = k, w.v = as_heads(v, spec.kv_heads, spec.head_dim), w.slots = slots_, w.settled = true;
  w.written = plan_.counter("tokens_written");
  w.k_pages = pages.k_pages, w.v_pages = pages.v_pages, w.k_scale = pages.k_scale, w.v_scale = pages.v_scale;
  plan_.call(label + " kv", w);

  // Where only the linear after it reads it, in bf16, and a device's kernels write that.
  const bool narrow =
      formats_.activations == ActivationFormat::kBf16 && batch_.prefills == 0 && !plan_.host_visible();
  const Tensor o = plan_.activation(narrow ? kBF16 : kF32, q.shape);
  if (batch_.decodes > 0) {
    AttentionDecodeArgs d;
    d.o = o.slice(0, batch_.decodes), d.q = q.slice(0, batch_.decodes);
    d.k_pages = pages.k_pages, d.v_pages = pages.v_pages, d.k_scale = pages.k_scale,
    d.v_scale = pages.v_scale;
    d.page_table = plan_.find("decode_page_table"), d.kv_length = plan_.find("decode_lengths");
    d.scale = spec.scale, d.window = spec.window, d.softcap = spec.softcap;
    d.pairs = plan_.counter(windowed("decode_pairs", spec.window));
    d.keys = plan_.counter(windowed("decode_keys", spec.window));
    d.chunks = plan_.chunks("decode");
    d.tables_settled = true, d.unsettled = 1;  // inputs of the step; its kv_write adds a token a sequence
    plan_.call(label, d);
  }
  if (batch_.prefills > 0) {
    AttentionPrefillArgs p;
    p.o = o.slice(batch_.decodes, batch_.prefill_tokens),
    p.q = q.slice(batch_.decodes, batch_.prefill_tokens);
    p.k_pages = pages.k_pages, p.v_pages = pages.v_pages, p.k_scale = pages.k_scale,
    p.v_scale = pages.v_scale;
    p.page_table = plan_.find("prefill_page_table"), p.kv_length = plan_.find("prefill_lengths");
    p.query_start = plan_.find("prefill_query_start");
    p.scale = spec.scale, p.window = spec.window, p.softcap = spec.softcap;
    p.pairs = plan_.counter(windowed("prefill_pairs", spec.window));
    p.keys = plan_.counter(windowed("prefill_keys", spec.window));
    p.chunks = plan_.chunks("prefill");
    plan_.call(label, p);
  }
  return reshaped(o, {tokens, spec.heads * spec.head_dim});
}

template <class Args>
static Tensor gated(StepPlan& plan, const std::string& label, const Tensor& gate, const Tensor& up) {
  Args a;
  a.y = plan.activation(kF32, gate.shape);
  a.gate = gate, a.up = up;
  plan.call(label, a);
  return a.y;
}
Tensor StepWriter::silu_mul(const std::string& label, const Tensor& gate, const Tensor& up) {
  return gated<SiluMulArgs>(plan_, label, gate, up);
}
Tensor StepWriter::gelu_mul(const std::string& label, const Tensor& gate, const Tensor& up) {
  return gated<GeluMulArgs>(plan_, label, gate, up);
}

Tensor StepWriter::add(const std::string& label, const Tensor& a, const Tensor& b) {
  const Tensor y = plan_.activation(kF32, a.shape);
  plan_.call(label, AddArgs{y, a, b});
  return y;
}

void StepWriter::logits(const Tensor& x, const Tensor& norm, float epsilon, const Tensor& head) {
  if (batch_.logit_rows == 0) return;
  const Tensor rows = plan_.activation(kF32, {batch_.logit_rows, x.dim(1)});
  plan_.call("logit rows", GatherRowsArgs{rows, x, logit_rows_});
  Activations in = norm_input("final norm", rows, norm, epsilon);
  linear_into("logits head", plan_.output("logits", kF32, {batch_.logit_rows, head.dim(0)}, Fetch::kAsked),
              in, head, {});
}

}  // namespace ridge
