#pragma once
// Session: everything that serving one model file takes, opened together: file, tokenizer, chat template,
// device, weights.

#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "formats/gguf.h"
#include "formats/template/template.h"
#include "formats/tokenizer.h"
#include "formats/tokenizer_added.h"
#include "models/synthetic.h"
#include "runtime/backends.h"

namespace ridge {

struct SessionOptions {
  DeviceOptions device;
  bool synthetic = false;       // the path names a model of models/synthetic.h, whose weights are random
  std::string assume_pre;       // pre-tokenizer of a file that names none or an unknown one
  bool needs_template = false;  // a file without a chat template is refused before its weights are read
  EngineOptions engine;
  // Tokens that each sequence will have, where that is known; what is said to fit into memory holds them.
  int64_t needed_tokens = 0;
};

/// One message of a chat.
struct ChatMessage {
  std::string role, content;
};

/// What whoever wrote `text` as plain text should know, a line each; empty as a rule: that it begins with BOS
/// written out, which stays text whether or not `add_bos` puts one before it; that bytes of it have no token.
std::vector<std::string> prompt_warnings(const Tokenizer& tokenizer, std::string_view text, bool add_bos);

class Session {
 public:
  /// Opens and loads. Errors: those of each part, each naming file, key or option, value and remedy.
  static Result<std::unique_ptr<Session>> open(const std::string& path, const SessionOptions& options);

  /// Why open() would not take this file with these options, in the order in which it would say so; empty: it
  /// would. The steps of open() themselves, but that no weight is read and no memory taken; each that can be
  /// taken is, so that all reasons are told and not the first alone.
  static std::vector<Status> refusals(const GgufFile& file, const SessionOptions& options);

  const GgufFile& file() const { return *file_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Model& model() const { return *model_; }
  InferenceEngine& engine() { return *engine_; }
  const InferenceEngine& engine() const { return *engine_; }
  Device& device() { return *device_; }
  const Device& device() const { return *device_; }
  bool has_template() const { return template_.has_value(); }

  /// Ids of plain text as a prompt: BOS where the file asks for it, control tokens in the text stay text.
  /// Logs prompt_warnings(). Errors: kInvalidArgument for text of which no token is left.
  Result<std::vector<int32_t>> encode_text(std::string_view text) const;
  /// Ids of a chat through the file's own template, control tokens only from the template, never from the
  /// messages. Logs which bytes of them have no token.
  Result<std::vector<int32_t>> encode_chat(const std::vector<ChatMessage>& messages) const;
  /// Ids that end an answer: the file's own and what its template ends a turn with.
  std::vector<int32_t> end_ids() const;

 private:
  // Opening, step by step. With Values::kNone nothing is placed; a step without what it builds on does
  // nothing.
  using Step = Status (Session::*)(const SessionOptions& options, Values values);
  static const std::vector<Step>& steps();
  Status read_tokenizer(const SessionOptions& options, Values values);
  Status read_template(const SessionOptions& options, Values values);
  Status make_device(const SessionOptions& options, Values values);
  Status check_room(const SessionOptions& options, Values values);
  Status read_model(const SessionOptions& options, Values values);
  Status check_vocabulary(const SessionOptions& options, Values values);
  Status make_engine(const SessionOptions& options, Values values);

  std::unique_ptr<GgufFile> opened_;
  std::unique_ptr<SyntheticFile> synthetic_;
  const GgufFile* file_ = nullptr;  // one of the two
  std::optional<Tokenizer> tokenizer_;
  tokenizer::AddedTokens controls_;  // as users may write them
  std::optional<ChatTemplate> template_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<InferenceEngine> engine_;
};

}  // namespace ridge
