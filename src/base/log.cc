#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>

#include "base/visible.h"

namespace ridge {

namespace {
struct Log {
  std::mutex mutex;
  LogSink sink;
  std::atomic<LogLevel> least{LogLevel::kWarning};
};
Log& the_log() {
  static Log log;
  return log;
}
}  // namespace

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(the_log().mutex);
  the_log().sink = std::move(sink);
}
void set_log_level(LogLevel least) {
  the_log().least = least;
}
bool log_enabled(LogLevel level) {
  return level >= the_log().least;
}

void log_line(LogLevel level, std::string_view line) {
  static const char* const kNames[] = {"debug", "info", "warning", "error"};
  const std::lock_guard lock(the_log().mutex);
  if (the_log().sink)
    the_log().sink(level, line);
  else
    std::fprintf(stderr, "ridge: %s: %s\n", kNames[static_cast<int>(level)], visible(line).c_str());
}

}  // namespace ridge
