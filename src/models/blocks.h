#pragma once
// Blocks that architectures share: each appends calls to a step plan and returns the tensors they write.

#include <string>

#include "models/model.h"

namespace ridge {

/// What linears read and, once some linear wanted them, its int8 codes or its bf16 form, made once and
/// shared.
struct Activations {
  Tensor x;  // [tokens, columns] f32, or bf16 where the norm before it wrote that
  Tensor codes, scale, narrow;
};

struct AttentionSpec {
  int64_t layer = 0, heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 0, softcap = 0;
  int64_t window = 0;
  Tensor frequencies;  // [pairs] f32
  float rope_magnitude = 1;
  bool interleaved = false;
};

class StepWriter {
 public:
  StepWriter(StepPlan& plan, const BatchShape& batch, const KvPages& kv, const StepFormats& formats);

  Tensor embed(const std::string& label, const Tensor& table, float scale);
  Tensor rms_norm(const std::string& label, const Tensor& x, const Tensor& w, float epsilon);
  /// Normalises each head: x [tokens, heads * head_dim] as [tokens * heads, head_dim].
  Tensor head_norm(const std::string& label, const Tensor& x, const Tensor& w, float epsilon);
  Activations activations(const Tensor& x) { return {x, {}, {}, {}}; }
  /// A norm that only linears read, in the format that they want.
  Activations norm_input(const std::string& label, const Tensor& x, const Tensor& w, float epsilon);
  Tensor linear(const std::string& label, Activations& in, const Tensor& w, const Tensor& bias = {});
  /// One linear for each matrix of the group or, where they lie in one piece, one for all (as `whole`), of
  /// whose output the results are parts, with strides; apart also where `may_join` is false.
  std::vector<Tensor> linears(const std::vector<std::string>& labels, const std::string& whole,
                              Activations& in, const MatrixGroup& group, bool may_join);
  /// rope, kv_write and attention; q [tokens, heads * head_dim], k and v [tokens, kv_heads * head_dim].
  Tensor attention(const std::string& label, Tensor q, Tensor k, const Tensor& v, const AttentionSpec& spec);
  Tensor silu_mul(const std::string& label, const Tensor& gate, const Tensor& up);
  Tensor gelu_mul(const std::string& label, const Tensor& gate, const Tensor& up);
  Tensor add(const std::string& label, const Tensor& a, const Tensor& b);
  /// Final norm and head over the rows that need logits.
  void logits(const Tensor& x, const Tensor& norm, float epsilon, const Tensor& head);

 private:
  void linear_into(const std::string& label, const Tensor& y, Activations& in, const Tensor& w,
                   const Tensor& bias);

  StepPlan& plan_;
  const BatchShape& batch_;
  const KvPages& kv_;
  StepFormats formats_;
  Tensor ids_, positions_, slots_, logit_rows_;
};

/// "layer 3 q".
std::string in_layer(int64_t layer, const char* what);

}  // namespace ridge
