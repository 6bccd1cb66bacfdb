#pragma once
// A tiny model with a tokenizer and a chat template, as a file on disk.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "engine/session.h"
#include "formats/tokenizer_specs.h"
#include "models/tiny_model.h"

namespace ridge {

inline constexpr const char* kTemplate =
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('system must come first') }}{% endif %}"
    "{% if m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('no role ' + m.role) }}{% "
    "endif %}"
    "[tool]{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}[tool]assistant: {% endif %}";

inline SessionOptions one_thread() {
  SessionOptions o;
  o.device.cpu.threads = 1;
  return o;
}

struct FileOptions {
  const char* chat_template = kTemplate;
  bool add_bos = true;
  int64_t eos = 256;
  std::function<void(TokenizerSpec*)> edit = nullptr;  // changes the tokenizer before it is written
};

/// Holds a model of the given weights with the tokenizer small_bpe(): bytes are their own ids, 256 <|end|>,
/// 257 <|start|> (BOS). Removed with the object.
class ModelFile {
 public:
  ModelFile() : path_(testing::TempDir() + "ridge-model-XXXXXX") {
    const int file = mkstemp(path_.data());
    EXPECT_GE(file, 0);
    close(file);
  }
  ~ModelFile() { std::filesystem::remove(path_); }
  ModelFile(const ModelFile&) = delete;

  void write(TinySpec spec, const FileOptions& f = {}) {
    TokenizerSpec t = small_bpe();
    if (f.edit) f.edit(&t);
    spec.vocab = static_cast<int64_t>(t.tokens.size());
    const auto more = spec.extra;
    spec.extra = [&](GgufWriter* w) {
      if (more) more(w);
      w->add_string("tokenizer.ggml.model", t.model);
      w->add_string("tokenizer.ggml.pre", t.pre);
      w->add_string_array("tokenizer.ggml.tokens", t.tokens);
      w->add_string_array("tokenizer.ggml.merges", t.merges);
      w->add_i32_array("tokenizer.ggml.token_type", t.types);
      w->add_u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(t.bos));
      w->add_u32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(f.eos));
      w->add_bool("tokenizer.ggml.add_bos_token", f.add_bos);
      if (f.chat_template != nullptr) w->add_string("tokenizer.chat_template", f.chat_template);
    };
    std::ofstream(path_, std::ios::binary) << TinyFile(spec).bytes();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ridge
