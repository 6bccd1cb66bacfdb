#pragma once
// A model writes step plans; it calls no kernel.

#include <memory>

#include "models/config.h"
#include "models/weights.h"
#include "plan/step_plan.h"

namespace ridge {

/// One batch bucket: tokens [0, decodes) are one new token each of as many sequences, the rest are prefill
/// chunks.
struct BatchShape {
  int64_t decodes = 0, prefills = 0, prefill_tokens = 0, logit_rows = 0;
  int64_t tokens() const { return decodes + prefill_tokens; }
  auto operator<=>(const BatchShape&) const = default;
};

/// The pages of one layer. [pages, kv_heads, page_size, head_dim]; scales [pages, kv_heads, page_size] with
/// i8 only.
struct KvLayer {
  Tensor k_pages, v_pages, k_scale, v_scale;
};
struct KvPages {
  std::vector<KvLayer> layers;
  int64_t page_size = 0, max_pages = 0;  // max_pages: width of a sequence's page table
};

/// What one layer caches.
struct KvShape {
  int64_t kv_heads = 0, head_dim = 0;
  int64_t window = 0;  // 0: everything
};

/// What linears read: f32; bf16; int8 codes for block-quantized weights, f32 for others.
enum class ActivationFormat : uint8_t { kF32, kInt8, kBf16 };
const char* activation_format_name(ActivationFormat f);  // "f32", "int8", "bf16"

struct StepFormats {
  ActivationFormat activations = ActivationFormat::kInt8;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const DecoderConfig& config() const = 0;
  virtual std::vector<KvShape> kv_shapes() const = 0;  // by layer
  /// Everything about positions that changes K or V: rotary tables, for the identity of KV pages.
  virtual uint64_t rope_hash() const = 0;
  /// Appends the calls of one step. Reads the tensors of names.h from the plan; writes its "logits"
  /// [logit_rows, vocab].
  virtual void write_step(StepPlan& plan, const BatchShape& batch, const KvPages& kv,
                          const StepFormats& formats) const = 0;
  const WeightStore& weights() const { return *weights_; }

 protected:
  std::unique_ptr<WeightStore> weights_;
};

using ModelLoader = Result<std::unique_ptr<Model>> (*)(std::unique_ptr<WeightStore>);
struct Architecture {
  const char* name;  // as general.architecture says
  ModelLoader load;
};
/// All architectures, one a folder of models/.
const std::vector<Architecture>& architectures();

/// Loads the model of an open file. Errors: kDeclined naming an unknown architecture and those known, or a
/// tensor that the architecture has no use for; what the loader finds.
Result<std::unique_ptr<Model>> load_model(Device& device, const GgufFile& file,
                                          Values values = Values::kFile);

}  // namespace ridge
