#include "formats/template/python_text.h"

#include <algorithm>
#include <cstring>

#include "formats/template/characters.h"

namespace ridge::jinja {

size_t character_bytes(std::string_view s) {
  const auto lead = static_cast<unsigned char>(s[0]);
  const size_t n = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(n, s.size());
}

char32_t character_at(std::string_view s, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(s[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0xC0) return lead;
  if (lead < 0xE0) return (lead & 31) << 6 | (byte(1) & 63);
  if (lead < 0xF0) return (lead & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
  return (lead & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
}

size_t byte_offset(std::string_view s, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < s.size(); --index) at += character_bytes(s.substr(at));
  return at;
}

int64_t count_characters(std::string_view s) {
  int64_t n = 0;
  for (const char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

namespace {
size_t previous_character(std::string_view s, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(s[at]) & 0xC0) == 0x80) --at;
  return at;
}

template <class Matches>
std::string_view strip_if(std::string_view s, bool left, bool right, Matches matches) {
  size_t begin = 0, end = s.size();
  while (left && begin < end && matches(character_at(s, begin))) begin += character_bytes(s.substr(begin));
  while (right && end > begin) {
    const size_t at = previous_character(s, end);
    if (!matches(character_at(s, at))) break;
    end = at;
  }
  return s.substr(begin, end - begin);
}
}  // namespace

size_t space_prefix(std::string_view s) {
  return s.size() - strip_if(s, true, false, is_space).size();
}
size_t space_suffix(std::string_view s) {
  return s.size() - strip_if(s, false, true, is_space).size();
}

std::string_view strip(std::string_view s, std::string_view characters, bool left, bool right) {
  std::u32string set;
  for (size_t i = 0; i < characters.size(); i += character_bytes(characters.substr(i)))
    set += character_at(characters, i);
  std::sort(set.begin(), set.end());
  return strip_if(s, left, right, [&](char32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

// glibc's memmem is linear; std::string::find is not.
size_t find_text(std::string_view s, std::string_view what, size_t from) {
  if (from > s.size() || what.size() > s.size() - from) return std::string_view::npos;
  if (what.empty()) return from;
  const void* at = memmem(s.data() + from, s.size() - from, what.data(), what.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<size_t>(static_cast<const char*>(at) - s.data());
}

size_t find_text_backwards(std::string_view s, std::string_view what) {
  const std::string s_back(s.rbegin(), s.rend()), what_back(what.rbegin(), what.rend());
  const size_t at = find_text(s_back, what_back);
  return at == std::string_view::npos ? at : s.size() - at - what.size();
}

std::optional<std::string> replace_text(std::string_view s, std::string_view old, std::string_view with,
                                        int64_t count, size_t limit) {
  std::string out;
  size_t at = 0;
  const auto put = [&](std::string_view v) {
    out += v;
    return out.size() <= limit;
  };
  if (old.empty()) {  // before every character and at the end
    for (; count != 0; --count) {
      if (!put(with)) return std::nullopt;
      if (at >= s.size()) break;
      const size_t n = character_bytes(s.substr(at));
      if (!put(s.substr(at, n))) return std::nullopt;
      at += n;
    }
  } else {
    for (; count != 0; --count) {
      const size_t found = find_text(s, old, at);
      if (found == std::string_view::npos) break;
      if (!put(s.substr(at, found - at)) || !put(with)) return std::nullopt;
      at = found + old.size();
    }
  }
  if (at < s.size() && !put(s.substr(at))) return std::nullopt;
  return out;
}

int64_t count_text(std::string_view s, std::string_view what) {
  if (what.empty()) return count_characters(s) + 1;
  int64_t n = 0;
  for (size_t at = find_text(s, what); at != std::string_view::npos;
       at = find_text(s, what, at + what.size()))
    ++n;
  return n;
}

Pieces split_text(std::string_view s, std::string_view separator, int64_t most) {
  Pieces out;
  size_t at = 0;
  for (; most != 0; --most) {
    const size_t found = find_text(s, separator, at);
    if (found == std::string_view::npos) break;
    out.push_back(s.substr(at, found - at));
    at = found + separator.size();
  }
  out.push_back(s.substr(at));
  return out;
}

Pieces split_text_backwards(std::string_view s, std::string_view separator, int64_t most) {
  // Cut the reversed text, so that overlapping separators are found from the right.
  const std::string s_back(s.rbegin(), s.rend()), separator_back(separator.rbegin(), separator.rend());
  Pieces out;
  for (const std::string_view piece : split_text(s_back, separator_back, most)) {
    const auto begin = static_cast<size_t>(piece.data() - s_back.data());
    out.push_back(s.substr(s.size() - begin - piece.size(), piece.size()));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Pieces split_space(std::string_view s, int64_t most) {
  Pieces out;
  s.remove_prefix(space_prefix(s));
  while (!s.empty()) {
    size_t end = 0;
    while (end < s.size() && !is_space(character_at(s, end))) end += character_bytes(s.substr(end));
    if (most-- == 0) {
      out.push_back(s);
      break;
    }
    out.push_back(s.substr(0, end));
    s.remove_prefix(end);
    s.remove_prefix(space_prefix(s));
  }
  return out;
}

Pieces split_space_backwards(std::string_view s, int64_t most) {
  Pieces out;
  s.remove_suffix(space_suffix(s));
  while (!s.empty()) {
    if (most-- == 0) {
      out.push_back(s);
      break;
    }
    size_t begin = s.size();
    while (begin > 0 && !is_space(character_at(s, previous_character(s, begin))))
      begin = previous_character(s, begin);
    out.push_back(s.substr(begin));
    s = s.substr(0, begin);
    s.remove_suffix(space_suffix(s));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Pieces split_lines(std::string_view s, bool keep_ends) {
  Pieces out;
  size_t begin = 0;
  for (size_t i = 0; i < s.size();) {
    const size_t n = character_bytes(s.substr(i));
    if (!is_line_break(character_at(s, i))) {
      i += n;
      continue;
    }
    const size_t end = i + (s[i] == '\r' && i + 1 < s.size() && s[i + 1] == '\n' ? 2 : n);
    out.push_back(s.substr(begin, (keep_ends ? end : i) - begin));
    begin = i = end;
  }
  if (begin < s.size()) out.push_back(s.substr(begin));
  return out;
}

}  // namespace ridge::jinja
