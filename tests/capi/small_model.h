#pragma once
// A model of one small layer with a tokenizer and a chat template, as a file: what the C API does with a
// model is tested without a real one.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/random.h"
#include "formats/gguf_writer.h"
#include "formats/tokenizer_specs.h"
#include "ridge.h"

namespace ridge {

inline constexpr int64_t kSmallVocab = 264;

/// Each message as <|start|>role, newline, content <|end|>; the role "forbidden" is refused.
inline const char* small_template() {
  return "{% for m in messages %}{% if m.role == 'forbidden' %}{{ raise_exception('role forbidden is not "
         "known') }}"
         "{% endif %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}"
         "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";
}

class SmallFile {
 public:
  explicit SmallFile(bool with_template = true) {
    path_ = testing::TempDir() + "ridge_capi_" + std::to_string(getpid()) + "_" + std::to_string(count()++) +
            ".gguf";
    keys(with_template);
    tensors();
    const Status written = writer_.write(path_);
    EXPECT_TRUE(written.ok()) << written.message();
  }
  ~SmallFile() { std::remove(path_.c_str()); }
  SmallFile(const SmallFile&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  static int& count() {
    static int files = 0;
    return files;
  }
  void keys(bool with_template) {
    GgufWriter& w = writer_;
    w.add_string("general.architecture", "llama");
    w.add_u32("llama.block_count", 1), w.add_u32("llama.embedding_length", kHidden);
    w.add_u32("llama.attention.head_count", 2), w.add_u32("llama.attention.head_count_kv", 1);
    w.add_u32("llama.feed_forward_length", kHidden), w.add_u32("llama.context_length", 128);
    w.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    const TokenizerSpec spec = small_bpe();
    ASSERT_EQ(static_cast<int64_t>(spec.tokens.size()), kSmallVocab);
    w.add_string("tokenizer.ggml.model", spec.model), w.add_string("tokenizer.ggml.pre", spec.pre);
    w.add_string_array("tokenizer.ggml.tokens", spec.tokens);
    w.add_string_array("tokenizer.ggml.merges", spec.merges);
    w.add_i32_array("tokenizer.ggml.token_type", spec.types);
    w.add_u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(spec.bos));
    w.add_u32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(spec.eos));
    w.add_bool("tokenizer.ggml.add_bos_token", true);
    if (with_template) w.add_string("tokenizer.chat_template", small_template());
  }
  void add(const std::string& name, const Shape& shape, float mean, float spread) {
    auto& values = storage_.emplace_back(static_cast<size_t>(shape.elements()));
    for (float& v : values) v = mean + random_.uniform(-spread, spread);
    writer_.add_tensor(name, kF32, shape, values.data());
  }
  void tensors() {
    storage_.reserve(32);
    const float spread = std::sqrt(6.0f / static_cast<float>(kHidden));
    add("token_embd.weight", {kSmallVocab, kHidden}, 0, 1);
    for (const char* norm : {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"})
      add(norm, {kHidden}, 1, 0.3f);
    for (const char* square : {"blk.0.attn_q.weight", "blk.0.attn_output.weight", "blk.0.ffn_gate.weight",
                               "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"})
      add(square, {kHidden, kHidden}, 0, spread);
    for (const char* half : {"blk.0.attn_k.weight", "blk.0.attn_v.weight"})
      add(half, {kHidden / 2, kHidden}, 0, spread);
  }

  static constexpr int64_t kHidden = 64;
  std::string path_;
  GgufWriter writer_;
  Random random_{7};
  std::vector<std::vector<float>> storage_;
};

/// The small model, loaded through the C API on one thread, exactly unless told otherwise.
class LoadedModel {
 public:
  explicit LoadedModel(int32_t max_sequences = 1, bool with_template = true) : file_(with_template) {
    ridge_model_options o = RIDGE_MODEL_OPTIONS_INIT;
    o.threads = 1, o.max_sequences = max_sequences, o.activations = "f32";
    EXPECT_EQ(ridge_model_load(file_.path(), &o, &model_), RIDGE_OK) << ridge_error_message();
  }
  ~LoadedModel() { ridge_model_destroy(model_); }
  LoadedModel(const LoadedModel&) = delete;
  operator ridge_model*() const { return model_; }

 private:
  SmallFile file_;
  ridge_model* model_ = nullptr;
};

inline std::vector<int32_t> tokens_of(const ridge_model* model, const std::string& text, unsigned flags) {
  size_t count = 0;
  EXPECT_EQ(ridge_tokenize(model, text.data(), text.size(), flags, nullptr, 0, &count), RIDGE_OK)
      << ridge_error_message();
  std::vector<int32_t> ids(count);
  EXPECT_EQ(ridge_tokenize(model, text.data(), text.size(), flags, ids.data(), ids.size(), &count), RIDGE_OK)
      << ridge_error_message();
  return ids;
}

/// Succeeds when the last error names what it should.
inline testing::AssertionResult says(const std::string& part) {
  const std::string message = ridge_error_message();
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the message is: " << message << "\nwithout: " << part;
}

}  // namespace ridge
