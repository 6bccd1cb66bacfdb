#pragma once
// Step plans of models too large to hold: costs need shapes alone, so tensors have addresses without memory
// and nothing is ever run.

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "models/blocks.h"
#include "runtime/device.h"

namespace ridge {

class ShapesOnlyDevice final : public Device {
 public:
  const Target& target() const override { return target_; }
  std::string describe() const override { return "shapes only"; }
  Result<std::unique_ptr<Stream>> create_stream() override { return declined("shapes only: nothing runs"); }
  bool host_visible() const override { return false; }
  Result<MemoryRoom> room() const override { return MemoryRoom{INT64_MAX, "nothing is held"}; }
  Result<Buffer> allocate(int64_t bytes) override {
    void* const address = reinterpret_cast<void*>(next_);
    next_ += static_cast<uintptr_t>(bytes + 4095) / 4096 * 4096;
    return Buffer(address, bytes, [](void*, int64_t) {});
  }
  Status upload(void*, const void*, int64_t) override { return {}; }
  Status download(void*, const void*, int64_t) override { return declined("shapes only: nothing to read"); }

  Tensor tensor(DType dtype, const Shape& shape) {
    Tensor t(nullptr, dtype, shape);
    t.data = allocate(t.bytes() + 64)->data();
    return t;
  }

 private:
  Target target_;
  uintptr_t next_ = uintptr_t{1} << 45;
};

/// A decoder of matrices alone, in bf16: the test shape T8 unless changed.
struct ShapesModel {
  int64_t layers = 32, hidden = 4096, heads = 32, kv_heads = 8, head_dim = 128, inner = 14336, vocab = 128256;
  DType weights = kBF16, kv = kBF16;
  int64_t page_size = 16, max_pages = 256;

  /// One step of `batch` as a llama writes it.
  std::unique_ptr<StepPlan> plan(ShapesOnlyDevice& device, const BatchShape& batch) const {
    KvPages pages;
    pages.page_size = page_size, pages.max_pages = max_pages;
    for (int64_t i = 0; i < layers; ++i) {
      KvLayer l;
      const Shape page{4096, kv_heads, page_size, head_dim}, scale{4096, kv_heads, page_size};
      l.k_pages = device.tensor(kv, page), l.v_pages = device.tensor(kv, page);
      if (kv == kI8) l.k_scale = device.tensor(kF32, scale), l.v_scale = device.tensor(kF32, scale);
      pages.layers.push_back(l);
    }
    const auto matrix = [&](int64_t rows, int64_t columns) {
      return device.tensor(weights, {rows, columns});
    };
    auto plan = std::make_unique<StepPlan>(device);
    StepWriter step(*plan, batch, pages, {ActivationFormat::kF32});
    const Tensor norm = device.tensor(kF32, {hidden});
    Tensor x = step.embed("embedding", matrix(vocab, hidden), 1);
    for (int64_t i = 0; i < layers; ++i) {
      Activations in = step.activations(step.rms_norm("norm", x, norm, 1e-5f));
      const Tensor q = step.linear(in_layer(i, "q"), in, matrix(heads * head_dim, hidden)),
                   k = step.linear(in_layer(i, "k"), in, matrix(kv_heads * head_dim, hidden)),
                   v = step.linear(in_layer(i, "v"), in, matrix(kv_heads * head_dim, hidden));
      AttentionSpec spec;
      spec.layer = i, spec.heads = heads, spec.kv_heads = kv_heads, spec.head_dim = head_dim, spec.scale = 1;
      spec.frequencies = device.tensor(kF32, {head_dim / 2});
      Activations mixed = step.activations(step.attention(in_layer(i, "attention"), q, k, v, spec));
      x = step.add("residual", x, step.linear(in_layer(i, "o"), mixed, matrix(hidden, heads * head_dim)));
      Activations mlp = step.activations(step.rms_norm("norm", x, norm, 1e-5f));
      const Tensor gate = step.linear(in_layer(i, "gate"), mlp, matrix(inner, hidden)),
                   up = step.linear(in_layer(i, "up"), mlp, matrix(inner, hidden));
      Activations wide = step.activations(step.silu_mul(in_layer(i, "silu_mul"), gate, up));
      x = step.add("residual", x, step.linear(in_layer(i, "down"), wide, matrix(hidden, inner)));
    }
    step.logits(x, norm, 1e-5f, matrix(vocab, hidden));
    const Status s = plan->finish({});
    EXPECT_TRUE(s.ok()) << s.message();
    return plan;
  }
};

/// The sum over calls whose operator is `op` and whose label ends in `label`.
inline Cost cost_of(const StepPlan& plan, std::string_view op, std::string_view label = "") {
  Cost sum;
  for (size_t i = 0; i < plan.calls().size(); ++i) {
    const AnyCall& call = plan.calls()[i].call;
    const std::string_view at = call.label;
    if (call.op->name() == op && at.size() >= label.size() && at.substr(at.size() - label.size()) == label)
      sum += plan.cost(i);
  }
  return sum;
}

inline int64_t read_of(const Cost& c, DataClass d) {
  return c.read_bytes[static_cast<size_t>(d)];
}
inline int64_t written_of(const Cost& c, DataClass d) {
  return c.written_bytes[static_cast<size_t>(d)];
}

}  // namespace ridge
