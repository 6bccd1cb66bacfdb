#pragma once
// One log, off to stderr unless a program installs its own sink. Thread-safe; the sink may be called from any
// thread.

#include <functional>
#include <string_view>

#include "base/text.h"

namespace ridge {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
using LogSink = std::function<void(LogLevel, std::string_view line)>;

void set_log_sink(LogSink sink);  // nullptr: back to stderr
void set_log_level(LogLevel least);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view line);

template <class... P>
void log(LogLevel level, const P&... parts) {
  if (log_enabled(level)) log_line(level, text(parts...));
}

}  // namespace ridge
