#pragma once
// The loops that the probe times, compiled once per instruction set (probe_cpu.cc).

#include <cstdint>

namespace ridge {

/// The smallest set of bytes that all threads together read: each its share, from the first of its own
/// caches.
inline constexpr int64_t kLeastSet = 32 << 10;

struct ProbeLoops {
  /// Reads `bytes` (a multiple of 1024) in four streams; the sum keeps the loads alive.
  float (*read)(const void* from, int64_t bytes);
  void (*write)(void* to, int64_t bytes);
  void (*copy)(void* to, const void* from, int64_t bytes);
  /// `rounds` of 16 independent chains; returns the operations done (multiply-add = 2), 0 when the set has no
  /// such unit.
  int64_t (*f32)(int64_t rounds, float* sink);
  int64_t (*bf16)(int64_t rounds, float* sink);
  int64_t (*int8)(int64_t rounds, float* sink);
};

namespace scalar {
ProbeLoops probe_loops();
}
namespace avx2 {
ProbeLoops probe_loops();
}
namespace avx512 {
ProbeLoops probe_loops();
}

}  // namespace ridge
