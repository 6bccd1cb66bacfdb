#pragma once
// Ticks: the cheapest clock that all cores share, for stamps inside of an operator call.

#include <x86intrin.h>

#include <cstdint>
#include <limits>

#include "account/recorder.h"

namespace ridge {

/// Whether the processor's time stamp counter goes on at one rate, whatever the core's clock and sleep states
/// do (AMD64 manual vol. 3, CPUID 8000_0007h EDX bit 8).
bool ticks_are_even();

/// The time stamp counter where it is even, else now_ns(). A reading takes a third of one of now_ns().
inline int64_t ticks() {
  static const bool even = ticks_are_even();
  return even ? static_cast<int64_t>(__rdtsc()) : now_ns();
}

/// One moment on both clocks: two of them give the length of a tick.
struct Instant {
  int64_t tick = 0, ns = 0;
  /// The closest of three pairs of readings: between the two of a pair the core may be taken away.
  static Instant now() {
    Instant best;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < 3; ++i) {
      const int64_t before = ticks(), ns = now_ns(), apart = ticks() - before;
      if (apart < least) least = apart, best = {before + apart / 2, ns};
    }
    return best;
  }
};
/// Nanoseconds a tick between two instants; the further apart, the more exact (two clock readings of some
/// 50 ns over the distance).
inline double ns_per_tick(const Instant& from, const Instant& to) {
  return to.tick > from.tick ? static_cast<double>(to.ns - from.ns) / static_cast<double>(to.tick - from.tick)
                             : 1;
}

}  // namespace ridge
