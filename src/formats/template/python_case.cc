// Case and character classes of Python's str.
#include "formats/template/characters.h"
#include "formats/template/python_text.h"
#include "formats/unicode.h"

namespace ridge::jinja {

namespace {

void append_mapped(std::string& out, const Mapped& m) {
  for (int i = 0; i < m.count; ++i) append_utf8(out, m.to[i]);
}

// Capital sigma at the end of a word becomes the final form.
Mapped lower_in_context(std::string_view s, size_t at, char32_t c) {
  if (c != 0x3A3) return to_lower(c);
  size_t before = at;
  bool cased_before = false;
  if (before > 0) {
    --before;
    while (before > 0 && (static_cast<unsigned char>(s[before]) & 0xC0) == 0x80) --before;
    cased_before = is_cased(character_at(s, before));
  }
  const size_t after = at + 2;
  const bool cased_after = after < s.size() && is_cased(character_at(s, after));
  return {{cased_before && !cased_after ? U'\u03C2' : U'\u03C3', 0, 0}, 1};
}

template <class Map>
std::string map_characters(std::string_view s, Map map) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); i += character_bytes(s.substr(i)))
    append_mapped(out, map(i, character_at(s, i)));
  return out;
}

}  // namespace

std::string upper(std::string_view s) {
  return map_characters(s, [](size_t, char32_t c) { return to_upper(c); });
}
std::string lower(std::string_view s) {
  return map_characters(s, [&](size_t i, char32_t c) { return lower_in_context(s, i, c); });
}
std::string capitalize(std::string_view s) {
  return map_characters(
      s, [&](size_t i, char32_t c) { return i == 0 ? to_title(c) : lower_in_context(s, i, c); });
}
std::string title(std::string_view s) {
  bool in_word = false;
  return map_characters(s, [&](size_t i, char32_t c) {
    const Mapped m = in_word ? lower_in_context(s, i, c) : to_title(c);
    in_word = is_cased(c);
    return m;
  });
}
std::string swap_case(std::string_view s) {
  return map_characters(s, [&](size_t i, char32_t c) {
    const Mapped low = lower_in_context(s, i, c);
    return low.count != 1 || low.to[0] != c ? low : to_upper(c);
  });
}

namespace {
// Every cased character is of that case, and there is one.
bool is_case(std::string_view s, bool want_upper) {
  bool any = false;
  for (size_t i = 0; i < s.size(); i += character_bytes(s.substr(i))) {
    const char32_t c = character_at(s, i);
    if (!is_cased(c)) continue;
    const Mapped low = to_lower(c), up = to_upper(c);
    const bool has_lower = low.count > 1 || low.to[0] != c, has_upper = up.count > 1 || up.to[0] != c;
    if (want_upper ? !has_lower || has_upper : has_lower) return false;
    any = true;
  }
  return any;
}
}  // namespace

bool is_upper(std::string_view s) {
  return is_case(s, true);
}
bool is_lower(std::string_view s) {
  return is_case(s, false);
}

bool all_of_class(std::string_view s, Class c) {
  const auto is_member = [c](char32_t v) {
    switch (c) {
      case Class::kAlpha:
        return is_alpha(v);
      case Class::kAlphanumeric:
        return is_alphanumeric(v);
      case Class::kDigit:
        return is_digit_character(v);
      case Class::kSpace:
        return is_space(v);
      case Class::kPrintable:
        return is_printable(v);
    }
    return false;
  };
  for (size_t i = 0; i < s.size(); i += character_bytes(s.substr(i)))
    if (!is_member(character_at(s, i))) return false;
  return !s.empty();
}

bool is_word_character(char32_t c) {
  return c == '_' || is_alphanumeric(c);
}

}  // namespace ridge::jinja
