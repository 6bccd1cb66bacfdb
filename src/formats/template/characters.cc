#include "formats/template/characters.h"

#include <algorithm>
#include <iterator>

namespace ridge::jinja {

namespace {
struct CaseRun {
  int32_t first, last, step, delta;
};
struct CaseMany {
  int32_t from, to[3];
  constexpr CaseMany(int32_t f, int32_t a, int32_t b, int32_t c) : from(f), to{a, b, c} {}
};
struct CodeRange {
  int32_t first, last;
};
#include "formats/template/case_tables.inc"
#include "formats/template/class_tables.inc"

template <class Row, size_t N>
const Row* row_of(const Row (&table)[N], int32_t c) {  // the last row that begins at or before c
  const Row* after = std::upper_bound(std::begin(table), std::end(table), c,
                                      [](int32_t v, const Row& row) { return v < row.first; });
  return after == std::begin(table) ? nullptr : after - 1;
}

template <size_t N>
bool within(const CodeRange (&table)[N], char32_t c) {
  const CodeRange* row = row_of(table, static_cast<int32_t>(c));
  return row != nullptr && static_cast<int32_t>(c) <= row->last;
}

template <size_t N>
bool find_many(const CaseMany (&table)[N], char32_t c, Mapped* out) {
  for (const CaseMany& row : table)
    if (row.from == static_cast<int32_t>(c)) {
      out->count = 0;
      for (const int32_t to : row.to)
        if (to != 0) out->to[out->count++] = static_cast<char32_t>(to);
      return true;
    }
  return false;
}

template <size_t N, size_t M>
Mapped map_case(const CaseRun (&runs)[N], const CaseMany (&many)[M], char32_t c) {
  Mapped out = {{c, 0, 0}, 1};
  if (c < 128) {  // rows of step 1 hold ASCII
    const CaseRun* ascii = row_of(runs, static_cast<int32_t>(c));
    if (ascii != nullptr && static_cast<int32_t>(c) <= ascii->last)
      out.to[0] = c + static_cast<char32_t>(ascii->delta);
    return out;
  }
  if (find_many(many, c, &out)) return out;
  const auto code = static_cast<int32_t>(c);
  const CaseRun* run = row_of(runs, code);
  if (run != nullptr && code <= run->last && (code - run->first) % run->step == 0)
    out.to[0] = static_cast<char32_t>(code + run->delta);
  return out;
}
}  // namespace

Mapped to_upper(char32_t c) {
  return map_case(kUpper, kUpperMany, c);
}
Mapped to_lower(char32_t c) {
  return map_case(kLower, kLowerMany, c);
}
Mapped to_title(char32_t c) {
  Mapped out;
  return c >= 128 && find_many(kTitleMany, c, &out) ? out : to_upper(c);
}
bool is_cased(char32_t c) {
  return within(kCased, c);
}
bool is_printable(char32_t c) {
  return c < 128 ? c >= 32 && c != 127 : !within(kNotPrintable, c);
}
bool is_alphanumeric(char32_t c) {
  return within(kAlphanumeric, c);
}
bool is_alpha(char32_t c) {
  return within(kAlpha, c);
}
bool is_digit_character(char32_t c) {
  return within(kDigit, c);
}
bool is_space(char32_t c) {
  if (c < 128) return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
bool is_line_break(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace ridge::jinja
