#include "models/synthetic.h"

#include <sys/mman.h>

#include <cstring>

#include "base/checked.h"
#include "formats/gguf_writer.h"

namespace ridge {

namespace {

struct Sizes {
  const char *name, *architecture;
  int64_t layers, hidden, heads, kv_heads, head_dim, inner, vocab, context;
  float rope_base, epsilon;
  bool qk_norm;
};
// As in the models' published configurations.
constexpr Sizes kModels[] = {
    {"llama-3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, 500000, 1e-5f, false},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1000000, 1e-6f, true},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1000000, 1e-6f, true},
};

void add_keys(const Sizes& m, GgufWriter* w) {
  const std::string prefix = text(m.architecture, ".");
  w->add_string("general.architecture", m.architecture);
  w->add_string("general.name", text("synthetic ", m.name));
  for (const auto& [key, value] : {std::pair<const char*, int64_t>{"block_count", m.layers},
                                   {"embedding_length", m.hidden},
                                   {"attention.head_count", m.heads},
                                   {"attention.head_count_kv", m.kv_heads},
                                   {"attention.key_length", m.head_dim},
                                   {"attention.value_length", m.head_dim},
                                   {"feed_forward_length", m.inner},
                                   {"context_length", m.context},
                                   {"vocab_size", m.vocab}})
    w->add_u32(prefix + key, static_cast<uint32_t>(value));
  w->add_f32(prefix + "attention.layer_norm_rms_epsilon", m.epsilon);
  w->add_f32(prefix + "rope.freq_base", m.rope_base);
}

/// The bytes as tokens, so that any text can be fed, and numbered words.
void add_vocabulary(const Sizes& m, GgufWriter* w) {
  constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;  // GGUF's token types
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {kUnknown, kControl, kControl};
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b)
    tokens.push_back(text("<0x", kHex[b / 16], kHex[b % 16], ">")), types.push_back(kByte);
  while (static_cast<int64_t>(tokens.size()) < m.vocab)
    tokens.push_back(text("\u2581word", tokens.size())), types.push_back(kNormal);
  const std::vector<float> scores(tokens.size());
  w->add_string("tokenizer.ggml.model", "llama");
  w->add_string_array("tokenizer.ggml.tokens", tokens);
  w->add_f32_array("tokenizer.ggml.scores", scores);
  w->add_i32_array("tokenizer.ggml.token_type", types);
  w->add_u32("tokenizer.ggml.unknown_token_id", 0);
  w->add_u32("tokenizer.ggml.bos_token_id", 1);
  w->add_u32("tokenizer.ggml.eos_token_id", 2);
}

void add_tensors(const Sizes& m, GgufWriter* w) {
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    w->add_tensor(name, kBF16, {rows, columns}, nullptr);
  };
  const auto vector = [&](const std::string& name, int64_t n) { w->add_tensor(name, kF32, {n}, nullptr); };
  const int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  matrix("token_embd.weight", m.vocab, m.hidden);
  for (int64_t i = 0; i < m.layers; ++i) {
    const std::string at = text("blk.", i, ".");
    vector(at + "attn_norm.weight", m.hidden);
    matrix(at + "attn_q.weight", q, m.hidden);
    matrix(at + "attn_k.weight", kv, m.hidden);
    matrix(at + "attn_v.weight", kv, m.hidden);
    if (m.qk_norm)
      vector(at + "attn_q_norm.weight", m.head_dim), vector(at + "attn_k_norm.weight", m.head_dim);
    matrix(at + "attn_output.weight", m.hidden, q);
    vector(at + "ffn_norm.weight", m.hidden);
    matrix(at + "ffn_gate.weight", m.inner, m.hidden);
    matrix(at + "ffn_up.weight", m.inner, m.hidden);
    matrix(at + "ffn_down.weight", m.hidden, m.inner);
  }
  vector("output_norm.weight", m.hidden);
  matrix("output.weight", m.vocab, m.hidden);
}

int64_t data_bytes(const Sizes& m) {
  const int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  const int64_t layer = m.hidden * (2 * q + 2 * kv + 3 * m.inner);
  // Vectors and padding: 1 MiB a layer is more than any takes.
  return 2 * (m.layers * layer + 2 * m.vocab * m.hidden) + (m.layers + 1) * (int64_t{1} << 20);
}

}  // namespace

Result<std::unique_ptr<SyntheticFile>> SyntheticFile::create(const std::string& model) {
  const Sizes* sizes = nullptr;
  std::string known;
  for (const Sizes& s : kModels) {
    if (model == s.name) sizes = &s;
    known += text(known.empty() ? "" : ", ", s.name);
  }
  if (sizes == nullptr) return invalid_argument("synthetic model ", printable(model), ": there are ", known);
  GgufWriter writer;
  add_keys(*sizes, &writer), add_vocabulary(*sizes, &writer), add_tensors(*sizes, &writer);
  RIDGE_ASSIGN(const std::string header, writer.header());
  std::unique_ptr<SyntheticFile> out(new SyntheticFile());
  out->bytes_ = header.size() + static_cast<size_t>(data_bytes(*sizes));
  out->space_ =
      mmap(nullptr, out->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (out->space_ == MAP_FAILED) {
    out->space_ = nullptr;
    return resource_exhausted("no address space for ", out->bytes_, " bytes of ", model);
  }
  std::memcpy(out->space_, header.data(), header.size());
  RIDGE_ASSIGN(GgufFile file,
               GgufFile::open_memory({static_cast<const std::byte*>(out->space_), out->bytes_}, model));
  out->file_ = std::make_unique<GgufFile>(std::move(file));
  return out;
}

SyntheticFile::~SyntheticFile() {
  file_.reset();
  if (space_ != nullptr) munmap(space_, bytes_);
}

}  // namespace ridge
