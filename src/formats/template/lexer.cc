#include "formats/template/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "formats/template/python_text.h"

namespace ridge::jinja {

void fail_at(int line, const std::string& message) {
  throw Failure{corrupt("chat template, line ", line, ": ", message)};
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kString:
      return "the string " + printable(token.text, 40);
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kName:
    case TokenKind::kOperator:
      break;
  }
  return printable(token.text, 40);
}

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// \r\n and \r become \n; one newline at the very end is dropped.
std::string normalize_newlines(const std::string& source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(const std::string& source) : source_(normalize_newlines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool next_is(std::string_view v) const { return rest().substr(0, v.size()) == v; }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  void advance(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<int64_t>(at_),
                                         source_.begin() + static_cast<int64_t>(at_ + bytes), '\n'));
    at_ += bytes;
    if (bytes > 0) line_starting_ = source_[at_ - 1] == '\n';
  }
  void skip_space() { advance(space_prefix(rest())); }
  // After a tag: "-" takes all white space, none the one newline (trim_blocks), "+" nothing.
  void after_tag(bool strip) {
    if (strip)
      skip_space();
    else if (next_is("\n"))
      advance(1);
  }

  static size_t find_tag(std::string_view text) {
    for (size_t i = text.find('{'); i != std::string_view::npos; i = text.find('{', i + 1))
      if (i + 1 < text.size() && std::strchr("%{#", text[i + 1]) != nullptr && text[i + 1] != '\0') return i;
    return std::string_view::npos;
  }

  // The text before a tag, with the white space that the tag's sign (or lstrip_blocks) takes away.
  std::string before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return std::string(text.substr(0, text.size() - space_suffix(text)));
    if (sign != '+' && !is_variable) {
      const size_t newline = text.rfind('\n');
      const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_start > 0 || line_starting_) &&
          space_prefix(text.substr(line_start)) == text.size() - line_start)
        return std::string(text.substr(0, line_start));
    }
    return std::string(text);
  }

  void root() {
    const size_t begin = find_tag(rest());
    if (begin == std::string_view::npos) {
      add(TokenKind::kData, std::string(rest()));
      return advance(rest().size());
    }
    const char type = source_[at_ + begin + 1];
    const char sign = at_ + begin + 2 < source_.size() ? source_[at_ + begin + 2] : ' ';
    const bool has_sign = sign == '-' || sign == '+';
    std::string data = before_tag(rest().substr(0, begin), has_sign ? sign : ' ', type == '{');
    if (!data.empty()) add(TokenKind::kData, std::move(data));
    advance(begin);
    const size_t open = has_sign ? 3 : 2;
    if (type == '#') return comment(open);
    if (type == '%' && raw(open)) return;
    add(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    advance(open);
    inside(type == '{');
  }

  void comment(size_t open) {
    const int line = line_;
    advance(open);
    const size_t close = rest().find("#}");
    if (close == std::string_view::npos) fail_at(line, "a comment is not closed with '#}'");
    const char sign = close > 0 ? rest()[close - 1] : ' ';
    advance(close + 2);
    if (sign != '+') after_tag(sign == '-');
  }

  // {% raw %} … {% endraw %}: true when there is one here.
  bool raw(size_t open) {
    size_t i = open;
    const std::string_view text = rest();
    const auto spaces = [&](std::string_view t) { i += space_prefix(t.substr(i)); };
    spaces(text);
    if (text.substr(i, 3) != "raw") return false;
    i += 3;
    spaces(text);
    const bool strip = text.substr(i, 1) == "-";
    if (strip) ++i;
    if (text.substr(i, 2) != "%}") return false;
    const int line = line_;
    advance(i + 2);
    if (strip) skip_space();
    const std::string_view body = rest();
    for (size_t end = body.find("{%"); end != std::string_view::npos; end = body.find("{%", end + 1)) {
      i = end + 2;
      const char sign = i < body.size() && (body[i] == '-' || body[i] == '+') ? body[i++] : ' ';
      spaces(body);
      if (body.substr(i, 6) != "endraw") continue;
      i += 6;
      spaces(body);
      const char close = i < body.size() && (body[i] == '-' || body[i] == '+') ? body[i++] : ' ';
      if (body.substr(i, 2) != "%}") continue;
      std::string data = before_tag(body.substr(0, end), sign, false);
      if (!data.empty()) add(TokenKind::kData, std::move(data));
      advance(i + 2);
      if (close != '+') after_tag(close == '-');
      return true;
    }
    fail_at(line, "{% raw %} is not closed with {% endraw %}");
  }

  // Tokens up to the end of a tag. Within brackets "}}" and "%}" are operators.
  void inside(bool is_variable) {
    const int line = line_;
    const std::string_view close = is_variable ? "}}" : "%}";
    std::string open;
    while (at_ < source_.size()) {
      if (open.empty()) {
        const char sign = source_[at_];
        const bool has_sign = sign == '-' || (sign == '+' && !is_variable);
        if (next_is(close) || (has_sign && rest().substr(1, 2) == close)) {
          add(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
          advance(has_sign ? 3 : 2);
          if (has_sign ? sign == '-' : !is_variable) after_tag(has_sign);
          return;
        }
      }
      if (const size_t space = space_prefix(rest()); space > 0)
        advance(space);
      else
        token(open);
    }
    fail_at(line, is_variable ? "'{{' is not closed with '}}'" : "'{%' is not closed with '%}'");
  }

  void token(std::string& open) {
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    if (is_name_start(c)) {
      size_t n = 1;
      while (n < rest().size() && (is_name_start(rest()[n]) || is_digit(rest()[n]))) ++n;
      add(TokenKind::kName, std::string(rest().substr(0, n)));
      return advance(n);
    }
    for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="})
      if (next_is(two)) {
        add(TokenKind::kOperator, std::string(two));
        return advance(2);
      }
    if (c == '\0' || std::strchr("+-/*%~[](){}><=.:|,;", c) == nullptr)
      fail_at(line_, "unexpected character " + printable(rest().substr(0, character_bytes(rest()))));
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail_at(line_, text("unexpected '", c, "'"));
      if (open.back() != c) fail_at(line_, text("unexpected '", c, "', expected '", open.back(), "'"));
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(1, c));
    advance(1);
  }

  // digits with single underscores between them, from `i`; returns the end
  size_t digits(size_t i, int base) const {
    const auto is_one = [&](size_t j) {
      if (j >= source_.size()) return false;
      const char c = source_[j];
      const int value = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
      return value < base;
    };
    while (is_one(i) || (i < source_.size() && source_[i] == '_' && is_one(i + 1))) ++i;
    return i;
  }

  void number() {
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    size_t end = is_digit(source_[at_]) ? digits(at_, 10) : at_;
    bool is_float = false;
    if (!after_dot) {
      if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1]))
        end = digits(end + 1, 10), is_float = true;
      size_t exponent = end;
      if (exponent < source_.size() && (source_[exponent] | 32) == 'e') {
        ++exponent;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
        if (exponent < source_.size() && is_digit(source_[exponent]))
          end = digits(exponent, 10), is_float = true;
      }
    }
    is_float ? floating(end) : integer();
  }

  std::string without_underscores(size_t begin, size_t end) const {
    std::string out = source_.substr(begin, end - begin);
    out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
    return out;
  }

  void floating(size_t end) {
    const std::string digits_only = without_underscores(at_, end);
    double v = 0;
    const auto parsed = std::from_chars(digits_only.data(), digits_only.data() + digits_only.size(), v);
    if (parsed.ec != std::errc()) v = python_float(digits_only).value_or(0);  // beyond the range: inf or 0
    add(TokenKind::kFloat, "");
    tokens_.back().number = v;
    advance(end - at_);
  }

  void integer() {
    int base = 10;
    size_t begin = at_, end = at_ + 1;
    const char prefix =
        source_[at_] == '0' && at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 32) : ' ';
    const int other = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (other != 0 && digits(at_ + 2, other) > at_ + 2) {
      base = other, begin = at_ + 2, end = digits(begin, base);
    } else if (source_[at_] == '0') {  // 0, 00, 0_0; "01" is 0 and 1
      while (end < source_.size() &&
             (source_[end] == '0' || (source_[end] == '_' && source_.substr(end + 1, 1) == "0")))
        ++end;
    } else {
      end = digits(at_, 10);
    }
    const std::string plain = without_underscores(begin, end);
    add(TokenKind::kInteger, "");
    const auto parsed =
        std::from_chars(plain.data(), plain.data() + plain.size(), tokens_.back().integer, base);
    if (parsed.ec != std::errc())
      fail_at(line_, "the integer " + printable(plain, 40) + " does not fit 64 bits");
    advance(end - at_);
  }

  void string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_at(line_, "a string is not closed");
    std::string value;
    std::string problem;
    if (!python_unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), &value, &problem))
      fail_at(line_, problem);
    add(TokenKind::kString, std::move(value));
    advance(end + 1 - at_);
  }

  const std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last match ended in a newline
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const std::string& source) {
  return Lexer(source).run();
}

}  // namespace ridge::jinja
