#pragma once
// The wish that this process ends what it is doing, as Ctrl-C brings it about. Long work looks at it between
// its pieces: calls of a step, tiles of a long call, pieces of a file.

#include "base/status.h"

namespace ridge {

/// Stays until it is withdrawn. Safe in a signal handler and from any thread.
void request_stop();
void withdraw_stop();
bool stop_requested();
/// kCancelled when a stop is requested.
Status check_stop();

}  // namespace ridge
