#pragma once
// Properties of single characters, from the generated Unicode tables.

#include <cstdint>

namespace ridge::jinja {

struct Mapped {
  char32_t to[3];
  int count;
};
Mapped to_upper(char32_t c);
Mapped to_lower(char32_t c);
Mapped to_title(char32_t c);
bool is_cased(char32_t c);
bool is_printable(char32_t c);
bool is_alphanumeric(char32_t c);
bool is_alpha(char32_t c);
bool is_digit_character(char32_t c);
bool is_space(char32_t c);
bool is_line_break(char32_t c);

}  // namespace ridge::jinja
