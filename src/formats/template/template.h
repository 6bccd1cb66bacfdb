#pragma once
// Chat templates: an interpreter for the part of Jinja that they are written in. Renders what Hugging Face
// transformers renders (Jinja 3.1, sandboxed and immutable, trim_blocks and lstrip_blocks, loop controls, the
// generation tag; tojson, raise_exception, strftime_now as there). Limits: base/limits.h, kTemplate*.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/template/value.h"

namespace ridge {

using TemplateValue = jinja::Value;

/// A JSON document as a value. Errors: kInvalidArgument with the position; a repeated key, a lone surrogate
/// and nesting beyond limits::kJsonDepth are errors.
Result<TemplateValue> template_value_from_json(std::string_view json);

/// What chat templates are given. Values that are undefined stay undefined in the template.
struct ChatContext {
  TemplateValue messages;  // list of dicts: role, content, …
  bool add_generation_prompt = false;
  std::string bos_token, eos_token;
  TemplateValue tools = TemplateValue::none(), documents = TemplateValue::none();
  std::vector<std::pair<std::string, TemplateValue>> more;  // custom variables; they win over those above
  TemplateValue value() const;                              // the dict for render()
};

class ChatTemplate {
 public:
  /// Errors: kCorrupt with line and name: syntax, or a tag, filter, test, function or method that is not
  /// known here; kResourceExhausted beyond a limit. Nothing unknown is left for render() to meet.
  static Result<ChatTemplate> parse(std::string source);

  /// `context`: a dict of the template's variables. `now_unix`: seconds for strftime_now(), -1 for the
  /// clock's. Thread-safe. Errors: kInvalidArgument with the line: raise_exception()'s message, an undefined
  /// value used, a wrong type; kResourceExhausted ("budget exceeded"): steps, output, nesting, range().
  Result<std::string> render(const TemplateValue& context, int64_t now_unix = -1) const;

  const std::string& source() const { return *source_; }

 private:
  struct Parsed;
  ChatTemplate() = default;
  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace ridge
