#include "base/text.h"

#include <charconv>
#include <cstdio>

#include "base/utf8.h"
#include "base/visible.h"

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

namespace {

struct Range {
  uint32_t first, last;
};
// Characters that show nothing of their own or change how their neighbours show: general categories Cc (from
// U+0080), Cf, Zl, Zp, Co and the noncharacters of Unicode 15, ascending.
constexpr Range kFormless[] = {{0x80, 0x9f},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
                               {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
                               {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
                               {0xe000, 0xf8ff},   {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb},
                               {0xfffe, 0xffff},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
                               {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff},
                               {0x3fffe, 0x3ffff}, {0x4fffe, 0x10ffff}};

bool shows(uint32_t point) {
  for (const Range& r : kFormless)
    if (point <= r.last) return point < r.first;
  return true;
}

uint32_t code_point(std::string_view sequence) {
  static constexpr unsigned char kLeadBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t point = static_cast<unsigned char>(sequence[0]) & kLeadBits[sequence.size()];
  for (const char c : sequence.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return point;
}

}  // namespace

namespace {

/// Appends at most `limit` bytes of `text`, each character that shows nothing of its own escaped.
void append_escaped(std::string* out, std::string_view text, size_t limit) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_sequence(text.substr(at)), taken = length > 0 ? length : 1;
    if (at + taken > limit) break;
    const std::string_view sequence = text.substr(at, taken);
    const uint32_t point = length > 0 ? code_point(sequence) : static_cast<unsigned char>(sequence[0]);
    char escaped[16] = "";
    if (length == 0 || point < 0x20 || point == 0x7f)
      std::snprintf(escaped, sizeof escaped, "\\x%02x", point);
    else if (!shows(point))
      std::snprintf(escaped, sizeof escaped, "\\u{%x}", point);
    *out += *escaped != 0 ? std::string_view(escaped) : sequence;
    at += taken;
  }
  if (at < text.size()) *out += "…";
}

}  // namespace

std::string printable(std::string_view untrusted, size_t limit) {
  std::string out = "'";
  append_escaped(&out, untrusted, limit);
  return out + "'";
}

std::string visible(std::string_view line, size_t limit) {
  std::string out;
  append_escaped(&out, line, limit);
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
