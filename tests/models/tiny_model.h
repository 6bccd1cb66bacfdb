#pragma once
// Small models with random weights, written as GGUF in memory: what loading and the engine do can be tested
// in milliseconds and without a model file.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "formats/gguf_writer.h"
#include "models/model.h"
#include "runtime/cpu/cpu_device.h"
#include "tensor/blocks.h"

namespace ridge {

struct TinySpec {
  std::string architecture = "llama";
  int64_t layers = 2, hidden = 256, heads = 4, kv_heads = 2, head_dim = 32, inner = 256, vocab = 300,
          context = 512;
  int64_t window = 8, pattern = 2;  // gemma3: every `pattern`-th layer is global
  bool all_types = true;            // weights take every type in turn; otherwise f32
  bool own_head = true;             // a logits head apart from the embedding
  uint64_t seed = 1;
  std::set<std::string> left_out = {};  // keys and tensors that the file lacks
  /// Sees each tensor's values before they are encoded.
  std::function<void(const std::string& name, std::vector<float>* values)> edit = nullptr;
  /// Changes a tensor's shape in the file.
  std::function<void(const std::string& name, Shape* shape)> reshape = nullptr;
  /// Adds keys; one named in left_out is replaced so.
  std::function<void(GgufWriter* file)> extra = nullptr;
};

class TinyFile {
 public:
  explicit TinyFile(const TinySpec& spec) : spec_(spec), random_(spec.seed) {
    keys();
    tensors();
    auto made = writer_.bytes();
    EXPECT_TRUE(made.ok()) << made.status().message();
    bytes_ = made.ok() ? made.take() : "";
    auto opened = GgufFile::open_memory(std::as_bytes(std::span(bytes_.data(), bytes_.size())), "tiny.gguf");
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (opened.ok()) file_ = std::make_unique<GgufFile>(opened.take());
  }
  TinyFile(const TinyFile&) = delete;
  const GgufFile& file() const { return *file_; }
  const std::string& bytes() const { return bytes_; }

 private:
  bool wanted(const std::string& name) const { return spec_.left_out.count(name) == 0; }
  void number(const std::string& key, int64_t value) {
    if (wanted(key)) writer_.add_u32(spec_.architecture + "." + key, static_cast<uint32_t>(value));
  }
  void keys() {
    writer_.add_string("general.architecture", spec_.architecture);
    number("block_count", spec_.layers), number("embedding_length", spec_.hidden);
    number("attention.head_count", spec_.heads), number("attention.head_count_kv", spec_.kv_heads);
    number("attention.key_length", spec_.head_dim), number("attention.value_length", spec_.head_dim);
    number("feed_forward_length", spec_.inner), number("context_length", spec_.context);
    number("vocab_size", spec_.vocab);
    if (wanted("attention.layer_norm_rms_epsilon"))
      writer_.add_f32(spec_.architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
    if (wanted("rope.freq_base")) writer_.add_f32(spec_.architecture + ".rope.freq_base", 10000.0f);
    if (spec_.architecture == "gemma3")
      number("attention.sliding_window", spec_.window),
          number("attention.sliding_window_pattern", spec_.pattern);
    if (spec_.extra) spec_.extra(&writer_);
  }

  void add(const std::string& name, DType dtype, Shape shape, float mean, float spread) {
    const int64_t columns = shape[shape.rank() - 1], rows = shape.elements() / columns;
    if (spec_.reshape) spec_.reshape(name, &shape);
    // Whole rows of the old length, enough for the new shape.
    const int64_t stored = (shape.elements() + columns - 1) / columns;
    const Drawn from{spec_.seed, drawn_, rows, columns, stored, dtype, mean, spread};
    drawn_ += rows * columns;
    // A test writes file after file of one seed: most of their tensors are the same.
    static std::map<Drawn, Encoded> known;
    const auto found = spec_.edit ? known.end() : known.find(from);
    Encoded one = found != known.end() ? found->second : encoded(name, from);
    random_ = one.after;
    if (!spec_.edit && found == known.end()) known.emplace(from, one);
    if (!wanted(name)) return;
    writer_.add_tensor(name, dtype, shape, storage_.emplace_back(std::move(one.bytes))->data());
  }
  /// Which of a seed's numbers a tensor is made of, and how.
  struct Drawn {
    uint64_t seed;
    int64_t before, rows, columns, stored;
    DType dtype;
    float mean, spread;
    auto operator<=>(const Drawn&) const = default;
  };
  struct Encoded {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    Random after;
  };
  Encoded encoded(const std::string& name, const Drawn& d) {
    Random random = random_;
    std::vector<float> values(static_cast<size_t>(d.rows * d.columns));
    for (float& v : values) v = d.mean + random.uniform(-d.spread, d.spread);
    if (spec_.edit) spec_.edit(name, &values);
    values.resize(static_cast<size_t>(d.stored * d.columns), 0.0f);
    const int64_t row_bytes = d.columns / dtype_block(d.dtype) * dtype_block_bytes(d.dtype);
    std::vector<std::byte> raw(static_cast<size_t>(d.stored * row_bytes));
    for (int64_t r = 0; r < d.stored; ++r) {
      std::byte* row = raw.data() + r * row_bytes;
      const float* from = values.data() + r * d.columns;
      if (is_block_quantized(d.dtype)) {
        encode_row(d.dtype, from, d.columns, row);
        continue;
      }
      const Tensor t(row, d.dtype, {d.columns});
      for (int64_t c = 0; c < d.columns; ++c) t.set(from[c], c);
    }
    return {std::make_shared<const std::vector<std::byte>>(std::move(raw)), random};
  }
  void vector(const std::string& name, int64_t n) { add(name, kF32, {n}, 1.0f, 0.3f); }
  void matrix(const std::string& name, int64_t rows, int64_t columns) {
    static constexpr DType kTypes[] = {kQ8_0, kQ4_1, kQ5_0, kF16, kQ4_0, kBF16, kQ6_K, kF32, kQ4_K};
    DType dtype = spec_.all_types ? kTypes[turn_++ % std::size(kTypes)] : kF32;
    if (columns % dtype_block(dtype) != 0) dtype = columns % 32 == 0 ? kQ8_0 : kF16;
    add(name, dtype, {rows, columns}, 0, std::sqrt(6.0f / static_cast<float>(columns)));
  }
  void tensors() {
    const TinySpec& s = spec_;
    const bool gemma = s.architecture == "gemma3";
    const int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
    // The embedding in f32: a test can poison one token's row and leave the others as they are.
    add("token_embd.weight", kF32, {s.vocab, s.hidden}, 0, 1);
    for (int64_t i = 0; i < s.layers; ++i) {
      const std::string at = text("blk.", i, ".");
      vector(at + "attn_norm.weight", s.hidden);
      matrix(at + "attn_q.weight", q, s.hidden);
      matrix(at + "attn_k.weight", kv, s.hidden);
      matrix(at + "attn_v.weight", kv, s.hidden);
      matrix(at + "attn_output.weight", s.hidden, q);
      vector(at + "ffn_norm.weight", s.hidden);
      matrix(at + "ffn_gate.weight", s.inner, s.hidden);
      matrix(at + "ffn_up.weight", s.inner, s.hidden);
      matrix(at + "ffn_down.weight", s.hidden, s.inner);
      if (gemma || s.architecture == "qwen3") {
        vector(at + "attn_q_norm.weight", s.head_dim);
        vector(at + "attn_k_norm.weight", s.head_dim);
      }
      if (!gemma) continue;
      vector(at + "post_attention_norm.weight", s.hidden);
      vector(at + "post_ffw_norm.weight", s.hidden);
    }
    vector("output_norm.weight", s.hidden);
    if (s.own_head) matrix("output.weight", s.vocab, s.hidden);
  }

  TinySpec spec_;
  Random random_;
  GgufWriter writer_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> storage_;
  size_t turn_ = 0;
  int64_t drawn_ = 0;  // of random_
  std::string bytes_;
  std::unique_ptr<GgufFile> file_;
};

/// A tiny model loaded on a CPU device; the file stays beside it.
struct TinyModel {
  std::unique_ptr<TinyFile> file;
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Model> model;

  explicit TinyModel(const TinySpec& spec = {}, const CpuOptions& cpu = {.threads = 1})
      : file(std::make_unique<TinyFile>(spec)) {
    auto d = CpuDevice::create(cpu);
    EXPECT_TRUE(d.ok()) << d.status().message();
    device = d.take();
    auto m = load_model(*device, file->file());
    EXPECT_TRUE(m.ok()) << m.status().message();
    if (m.ok()) model = m.take();
  }
};

}  // namespace ridge
