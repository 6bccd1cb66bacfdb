// Python's literals and reprs: strings and numbers to and from text.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/text.h"
#include "formats/template/characters.h"
#include "formats/template/python_text.h"
#include "formats/unicode.h"

namespace ridge::jinja {

void append_repr(std::string& out, std::string_view s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  out += quote;
  char hex[12];
  for (size_t i = 0; i < s.size(); i += character_bytes(s.substr(i))) {
    const char32_t c = character_at(s, i);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += s[i];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += s.substr(i, character_bytes(s.substr(i)));
    } else {
      std::snprintf(hex, sizeof hex,
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    static_cast<unsigned>(c));
      out += hex;
    }
  }
  out += quote;
}

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// \xNN, \uNNNN, \UNNNNNNNN after the letter; `at` moves behind the digits.
bool unescape_code(std::string_view s, size_t* at, int digits, std::string* out, std::string* problem) {
  uint32_t code = 0;
  for (int i = 0; i < digits; ++i, ++*at) {
    const int v = *at < s.size() ? hex_value(s[*at]) : -1;
    if (v < 0) {
      *problem = text("an escape in a string needs ", digits, " hexadecimal digits");
      return false;
    }
    code = code << 4 | static_cast<uint32_t>(v);
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    *problem = text("an escape in a string names the code point ", code, ", which is no character");
    return false;
  }
  append_utf8(*out, code);
  return true;
}

// What Python's unicode-escape codec makes of a backslash before a character beyond ASCII: the character was
// written as \xe9, \u4e2d or \U0001f600 first, so the two backslashes become one and the rest stays text.
void append_escaped_escape(std::string* out, char32_t c) {
  char hex[12];
  std::snprintf(hex, sizeof hex,
                c < 0x100     ? "\\x%02x"
                : c < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
                static_cast<unsigned>(c));
  *out += hex;
}

}  // namespace

bool python_unescape(std::string_view s, std::string* out, std::string* problem) {
  for (size_t i = 0; i < s.size();) {
    if (s[i] != '\\') {
      *out += s[i++];
      continue;
    }
    if (++i >= s.size()) break;  // the lexer never ends a literal on a backslash
    const char c = s[i];
    if (static_cast<unsigned char>(c) >= 0x80) {
      append_escaped_escape(out, character_at(s, i));
      i += character_bytes(s.substr(i));
      continue;
    }
    ++i;
    static constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (c == '\n') continue;
    if (const size_t simple = kFrom.find(c); simple != kFrom.npos) {
      *out += kTo[simple];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      if (!unescape_code(s, &i, c == 'x' ? 2 : c == 'u' ? 4 : 8, out, problem)) return false;
    } else if (c == 'N') {
      *problem = "\\N{…} in a string is not supported: write the character itself";
      return false;
    } else if (c >= '0' && c <= '7') {
      char32_t code = static_cast<char32_t>(c - '0');
      for (int n = 1; n < 3 && i < s.size() && s[i] >= '0' && s[i] <= '7'; ++n)
        code = code * 8 + static_cast<char32_t>(s[i++] - '0');
      append_utf8(*out, code);
    } else {
      *out += '\\';
      *out += c;
    }
  }
  return true;
}

namespace {
// Digits with single underscores between digits lose them; false where Python refuses one.
bool drop_underscores(std::string_view s, std::string* out) {
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      *out += s[i];
    } else if (i == 0 || i + 1 >= s.size() || hex_value(s[i - 1]) < 0 || hex_value(s[i + 1]) < 0) {
      return false;
    }
  }
  return true;
}
}  // namespace

std::optional<double> python_float(std::string_view s) {
  std::string plain;
  if (!drop_underscores(strip_space(s), &plain) || plain.empty()) return std::nullopt;
  const size_t sign = plain[0] == '-' || plain[0] == '+' ? 1 : 0;
  const std::string name = lower(std::string_view(plain).substr(sign));
  const double factor = plain[0] == '-' ? -1 : 1;
  if (name == "inf" || name == "infinity") return factor * std::numeric_limits<double>::infinity();
  if (name == "nan") return std::copysign(std::numeric_limits<double>::quiet_NaN(), factor);
  if (name.empty() || (name[0] != '.' && (name[0] < '0' || name[0] > '9'))) return std::nullopt;
  double v = 0;
  const auto parsed = std::from_chars(plain.data() + sign, plain.data() + plain.size(), v);
  if (parsed.ptr != plain.data() + plain.size()) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) {  // too large, or too small
    const size_t e = name.find('e');
    const bool tiny = e != name.npos
                          ? name.find('-', e) != name.npos
                          : name.find_first_not_of("0.") == name.npos || name[0] == '0' || name[0] == '.';
    v = tiny ? 0 : std::numeric_limits<double>::infinity();
  } else if (parsed.ec != std::errc()) {
    return std::nullopt;
  }
  return factor * v;
}

std::optional<int64_t> python_int(std::string_view s, int64_t base) {
  std::string_view body = strip_space(s);
  const bool negative = !body.empty() && body[0] == '-';
  if (!body.empty() && (body[0] == '-' || body[0] == '+')) body.remove_prefix(1);
  const char prefix = body.size() > 2 && body[0] == '0' ? static_cast<char>(body[1] | 32) : ' ';
  const int64_t named = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
  if (named != 0 && (base == 0 || base == named)) {
    base = named;
    body.remove_prefix(body[2] == '_' ? 3 : 2);
  } else if (base == 0) {
    base = 10;
    if (body.size() > 1 && body[0] == '0' && body.find_first_not_of("0_") != body.npos) return std::nullopt;
  }
  std::string plain = negative ? "-" : "";
  if (base < 2 || base > 36 || body.empty() || !drop_underscores(body, &plain)) return std::nullopt;
  int64_t v = 0;
  const auto parsed = std::from_chars(plain.data(), plain.data() + plain.size(), v, static_cast<int>(base));
  if (parsed.ec != std::errc() || parsed.ptr != plain.data() + plain.size()) return std::nullopt;
  if (negative && body[0] == '-') return std::nullopt;
  return v;
}

// The shortest digits that read back; an exponent below 1e-4 and from 1e16 on.
void append_float_repr(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "nan";
    return;
  }
  if (std::isinf(v)) {
    out += v < 0 ? "-inf" : "inf";
    return;
  }
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, v, std::chars_format::scientific).ptr;
  const std::string_view all(digits, static_cast<size_t>(end - digits));
  const int exponent = std::atoi(std::string(all.substr(all.find('e') + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    out += all;  // to_chars writes two exponent digits at least, as Python does
    return;
  }
  char plain[400];
  const auto plain_end = std::to_chars(plain, plain + sizeof plain, v, std::chars_format::fixed).ptr;
  const std::string_view fixed(plain, static_cast<size_t>(plain_end - plain));
  out += fixed;
  if (fixed.find('.') == fixed.npos) out += ".0";
}

}  // namespace ridge::jinja
