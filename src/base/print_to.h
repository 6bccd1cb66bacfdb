#pragma once
// printf into a string, its arguments checked by the compiler.

#include <cstdarg>
#include <cstdio>
#include <string>

namespace ridge {

/// Appends what printf would write, up to 1023 bytes.
[[gnu::format(printf, 2, 3)]] inline void print_to(std::string& out, const char* format, ...) {
  char buffer[1024];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  out += buffer;
}

}  // namespace ridge
