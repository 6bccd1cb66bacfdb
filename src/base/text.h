#pragma once
// Text from values, without iostreams (cheap to include, locale-free).

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ridge {

void append_text(std::string& out, std::string_view v);
void append_text(std::string& out, int64_t v);
void append_text(std::string& out, uint64_t v);
void append_text(std::string& out, double v);  // shortest form that reads back as v
inline void append_text(std::string& out, const char* v) {
  append_text(out, std::string_view(v));
}
inline void append_text(std::string& out, const std::string& v) {
  append_text(out, std::string_view(v));
}
inline void append_text(std::string& out, bool v) {
  append_text(out, std::string_view(v ? "true" : "false"));
}
inline void append_text(std::string& out, char v) {
  out.push_back(v);
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
         !std::is_same_v<T, char>) void append_text(std::string& out, T v) {
  if constexpr (std::is_signed_v<T>)
    append_text(out, static_cast<int64_t>(v));
  else
    append_text(out, static_cast<uint64_t>(v));
}
inline void append_text(std::string& out, float v) {
  append_text(out, static_cast<double>(v));
}
template <class T>
void append_text(std::string& out, const std::vector<T>& v) {
  out += '[';
  for (size_t i = 0; i < v.size(); ++i) {
    if (i > 0) out += ", ";
    append_text(out, v[i]);
  }
  out += ']';
}

/// text("page_size is ", 24) == "page_size is 24".
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

/// Quotes a string from outside for a message, so that a hostile name can neither hide, nor reorder, nor
/// flood a line, nor drive a terminal. Readable text of any script stays as it is. ASCII controls and invalid
/// UTF-8 become \xNN; characters without a form of their own (C1 controls, direction and format characters,
/// line separators, private use, noncharacters) become \u{202e}. Cut after at most `limit` bytes, between
/// characters. The result is valid UTF-8 of at most 4 limit + 5 bytes.
std::string printable(std::string_view untrusted, size_t limit = 80);

/// 1536 -> "1.50 KiB".
std::string bytes_text(double bytes);

}  // namespace ridge
