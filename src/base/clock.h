#pragma once
// The calendar's time, for provenance. Durations are now_ns()'s (account/recorder.h).

#include <string>

namespace ridge {

/// "2025-01-31T12:00:00Z".
std::string utc_now();

}  // namespace ridge
