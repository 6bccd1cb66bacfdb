#pragma once
// Python's str on UTF-8: what its methods do to text. All functions take valid UTF-8 and are linear in it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridge::jinja {

using Pieces = std::vector<std::string_view>;  // into the text that was split

size_t character_bytes(std::string_view s);  // of the first character; s is not empty
char32_t character_at(std::string_view s, size_t at);
/// Byte offset of code point `index`; s.size() for the end. ASCII callers index directly.
size_t byte_offset(std::string_view s, int64_t index);
int64_t count_characters(std::string_view s);

size_t space_prefix(std::string_view s);  // bytes of leading white space, as str.isspace() has it
size_t space_suffix(std::string_view s);
/// Strips any of `characters`.
std::string_view strip(std::string_view s, std::string_view characters, bool left, bool right);
inline std::string_view strip_space(std::string_view s) {
  s.remove_prefix(space_prefix(s));
  s.remove_suffix(space_suffix(s));
  return s;
}

/// Position in bytes of `what` at or after `from`, npos if there is none. Linear even on hostile text.
size_t find_text(std::string_view s, std::string_view what, size_t from = 0);
size_t find_text_backwards(std::string_view s, std::string_view what);
/// str.replace; count < 0: all. nullopt if the result would exceed `limit` bytes.
std::optional<std::string> replace_text(std::string_view s, std::string_view old, std::string_view with,
                                        int64_t count, size_t limit);
int64_t count_text(std::string_view s, std::string_view what);

Pieces split_text(std::string_view s, std::string_view separator, int64_t most);
Pieces split_text_backwards(std::string_view s, std::string_view separator, int64_t most);
Pieces split_space(std::string_view s, int64_t most);
Pieces split_space_backwards(std::string_view s, int64_t most);
Pieces split_lines(std::string_view s, bool keep_ends);

std::string upper(std::string_view s);
std::string lower(std::string_view s);
std::string capitalize(std::string_view s);
std::string title(std::string_view s);  // str.title()
std::string swap_case(std::string_view s);
bool is_upper(std::string_view s);  // str.isupper()
bool is_lower(std::string_view s);
enum class Class { kAlpha, kAlphanumeric, kDigit, kSpace, kPrintable };
bool all_of_class(std::string_view s, Class c);  // false on ""
bool is_word_character(char32_t c);              // \w

/// repr(): quoted as Python quotes.
void append_repr(std::string& out, std::string_view s);
/// A string literal between its quotes, as Jinja reads it. False with the problem.
bool python_unescape(std::string_view literal, std::string* out, std::string* problem);
/// float(str) and int(str, base); nullopt: ValueError (or, for int, a value beyond 64 bits).
std::optional<double> python_float(std::string_view s);
std::optional<int64_t> python_int(std::string_view s, int64_t base);
void append_float_repr(std::string& out, double v);

}  // namespace ridge::jinja
