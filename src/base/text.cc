#include "base/text.h"

#include <charconv>
#include <cstdio>

namespace ridge {

void append_text(std::string& out, std::string_view v) {
  out.append(v);
}

template <class T>
static void append_number(std::string& out, T v) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  out.append(digits, end);
}
void append_text(std::string& out, int64_t v) {
  append_number(out, v);
}
void append_text(std::string& out, uint64_t v) {
  append_number(out, v);
}
void append_text(std::string& out, double v) {
  append_number(out, v);
}

std::string printable(std::string_view untrusted, size_t limit) {
  std::string out = "'";
  for (const char c : untrusted.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", byte);
      out += hex;
    } else {
      out += c;
    }
  }
  out += untrusted.size() > limit ? "…'" : "'";
  return out;
}

std::string bytes_text(double bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  char out[40];
  std::snprintf(out, sizeof out, unit == 0 ? "%.0f %s" : "%.2f %s", bytes, kUnits[unit]);
  return out;
}

}  // namespace ridge
