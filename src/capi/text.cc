// Text to ids and back.

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "capi/model.h"

using namespace ridge;
using namespace ridge::capi;

namespace {

Status check_flags(unsigned flags, unsigned known) {
  if ((flags & ~known) == 0) return {};
  return invalid_argument("flags is ", flags, ", the known ones together are ", known);
}

/// A field of a message: there, and UTF-8.
Result<std::string> field_of(const char* value, size_t index, const char* name) {
  if (value == nullptr) return invalid_argument("messages[", index, "].", name, " is NULL");
  if (!is_utf8(value)) return invalid_argument("messages[", index, "].", name, " is not valid UTF-8");
  return std::string(value);
}

}  // namespace

ridge_status ridge_tokenize(const ridge_model* model, const char* text, size_t text_bytes, unsigned flags,
                            int32_t* ids, size_t capacity, size_t* count) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    RIDGE_TRY(needed(count, "count"));
    if (text_bytes > 0) RIDGE_TRY(needed(text, "text"));
    RIDGE_TRY(check_flags(flags, RIDGE_TOKENIZE_BOS | RIDGE_TOKENIZE_SPECIAL));
    const Tokenizer& tokenizer = model->session->tokenizer();
    EncodeOptions o;
    o.add_bos = (flags & RIDGE_TOKENIZE_BOS) != 0 && tokenizer.add_bos();
    o.parse_special = (flags & RIDGE_TOKENIZE_SPECIAL) != 0;
    const std::string_view view = text_bytes > 0 ? std::string_view(text, text_bytes) : std::string_view();
    if (!o.parse_special)
      for (const std::string& warning : prompt_warnings(tokenizer, view, o.add_bos))
        log(LogLevel::kWarning, warning);
    RIDGE_ASSIGN(const std::vector<int32_t> made, tokenizer.encode(view, o));
    return write_buffer(made.data(), made.size(), ids, capacity, count, "ids");
  });
}

ridge_status ridge_detokenize(const ridge_model* model, const int32_t* ids, size_t count, unsigned flags,
                              char* text, size_t capacity, size_t* text_bytes) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    RIDGE_TRY(needed(text_bytes, "text_bytes"));
    if (count > 0) RIDGE_TRY(needed(ids, "ids"));
    RIDGE_TRY(check_flags(flags, RIDGE_DETOKENIZE_CONTROL));
    const Tokenizer& tokenizer = model->session->tokenizer();
    for (size_t i = 0; i < count; ++i)
      if (ids[i] < 0 || ids[i] >= tokenizer.vocab())
        return invalid_argument("ids[", i, "] is ", ids[i], ", the vocabulary has ", tokenizer.vocab());
    std::vector<int32_t> list;
    if (count > 0) list.assign(ids, ids + count);
    const std::string made = tokenizer.decode(list, (flags & RIDGE_DETOKENIZE_CONTROL) != 0);
    return write_buffer(made.c_str(), made.size() + 1, text, capacity, text_bytes, "text");
  });
}

ridge_status ridge_chat_encode(const ridge_model* model, const ridge_message* messages, size_t message_count,
                               int32_t* ids, size_t capacity, size_t* count) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    RIDGE_TRY(needed(count, "count"));
    if (message_count > 0) RIDGE_TRY(needed(messages, "messages"));
    if (message_count > static_cast<size_t>(limits::kMessages))
      return resource_exhausted("message_count is ", message_count, ", the limit is ", limits::kMessages);
    std::vector<ChatMessage> list;
    for (size_t i = 0; i < message_count; ++i) {
      ChatMessage m;
      RIDGE_ASSIGN(m.role, field_of(messages[i].role, i, "role"));
      RIDGE_ASSIGN(m.content, field_of(messages[i].content, i, "content"));
      list.push_back(std::move(m));
    }
    RIDGE_ASSIGN(const std::vector<int32_t> made, model->session->encode_chat(list));
    return write_buffer(made.data(), made.size(), ids, capacity, count, "ids");
  });
}
