#pragma once
// The checked build (cmake option RIDGE_CHECKED): what kernels note of indices that fit nothing, which only
// they see: page ids, lengths, slots, positions. One record a stream, in device memory; the first fault since
// the record was last read stays. device/checks.cuh writes it, CudaStream::read_fault() reads it.

#include <cstdint>

namespace ridge {

#ifdef RIDGE_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

enum class FaultKind : int32_t { kPage, kLength, kQueryRows, kSlot, kPosition };

/// Up to it angles of rotations are as exact as that of position 0 (ops/rope/README.md).
inline constexpr int64_t kMostPosition = int64_t{1} << 38;

struct Fault {
  uint32_t claimed = 0, raised = 0;  // raised: the rest is written
  FaultKind kind = FaultKind::kPage;
  int32_t call = -1;  // of the stream's names of calls
  int64_t row = 0, column = 0;
  int64_t value = 0, least = 0, most = 0;
};

/// Where launches of this thread note faults, and as whose; null: nowhere.
struct FaultPlace {
  Fault* fault = nullptr;
  int32_t call = -1;
};
inline thread_local FaultPlace g_fault_place;

}  // namespace ridge
