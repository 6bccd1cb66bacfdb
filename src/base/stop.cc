#include "base/stop.h"

#include <atomic>

namespace ridge {

namespace {
std::atomic<bool> g_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);
}  // namespace

void request_stop() {
  g_stop.store(true, std::memory_order_relaxed);
}
void withdraw_stop() {
  g_stop.store(false, std::memory_order_relaxed);
}
bool stop_requested() {
  return g_stop.load(std::memory_order_relaxed);
}
Status check_stop() {
  return stop_requested() ? Status(Code::kCancelled, "interrupted") : Status();
}

}  // namespace ridge
