#pragma once
// The chat-template language as tokens. Rules: Jinja 3.1's lexer with trim_blocks and lstrip_blocks on, which
// is how chat templates are rendered by Hugging Face transformers.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/template/value.h"

namespace ridge::jinja {

/// Thrown within this folder only; ChatTemplate turns it into a Status.
struct Failure {
  Status status;
};
/// An error that waits in an iterator until it is read that far.
struct DeferredFailure : Object {
  explicit DeferredFailure(Status s) : Object(0), status(std::move(s)) {}
  Status status;
};
[[noreturn]] void fail_at(int line, const std::string& message);  // kCorrupt: the template is at fault

enum class TokenKind : uint8_t {
  kData,
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // data, name, operator, or the string unescaped
  int64_t integer = 0;
  double number = 0;
  bool is(TokenKind k) const { return kind == k; }
  bool is_operator(std::string_view v) const { return kind == TokenKind::kOperator && text == v; }
  bool is_name(std::string_view v) const { return kind == TokenKind::kName && text == v; }
};
std::string describe(const Token& token);

/// Throws Failure with the line. The last token is kEnd.
std::vector<Token> tokenize(const std::string& source);

}  // namespace ridge::jinja
