#include "base/clock.h"

#include <ctime>

namespace ridge {

std::string utc_now() {
  char out[40];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return out;
}

}  // namespace ridge
