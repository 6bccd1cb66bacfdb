#pragma once
// Whether a time measured here is the program's own.

#include <chrono>
#include <ctime>
#include <thread>

namespace ridge {

/// Processors that two threads which do nothing but run get, 0 to 2: below about 1.8, other work takes the
/// rest and what two threads gain cannot be timed.
inline double cores_for_two_threads() {
  const auto share = [](double* out) {
    const auto begin = std::chrono::steady_clock::now();
    timespec first{}, last{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &first);
    double wall = 0;
    while (wall < 0.1) wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &last);
    *out = (static_cast<double>(last.tv_sec - first.tv_sec) +
            static_cast<double>(last.tv_nsec - first.tv_nsec) * 1e-9) /
           wall;
  };
  double mine = 0, other = 0;
  std::thread second(share, &other);
  share(&mine);
  second.join();
  return mine + other;
}

}  // namespace ridge
