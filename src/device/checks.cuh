#pragma once
// What kernels check of indices that the host does not see. Only the checked build does: in others Checks is
// empty and every check gives back what it was given, so that the code is the same as without it.

#include <type_traits>

#include "runtime/cuda/faults.h"

namespace ridge::device {

struct NoFaultPlace {};

struct Checks : std::conditional_t<kChecked, FaultPlace, NoFaultPlace> {
  /// `value`, which is [row, column] of its operand; the nearest number in [least, most] when it is outside,
  /// which is noted, unless another fault was before.
  __device__ __forceinline__ int64_t fit(FaultKind kind, int64_t row, int64_t column, int64_t value,
                                         int64_t least, int64_t most) const {
#ifdef RIDGE_CHECKED
    if (value >= least && value <= most) return value;
    if (this->fault != nullptr && atomicCAS(&this->fault->claimed, 0u, 1u) == 0) {
      Fault& f = *this->fault;
      f.kind = kind, f.call = this->call, f.row = row, f.column = column;
      f.value = value, f.least = least, f.most = most;
      __threadfence();
      atomicExch(&f.raised, 1u);
    }
    return value < least ? least : most;
#else
    return value;
#endif
  }
};

/// Those of the next launch of this thread.
inline Checks checks_of_launch() {
  Checks checks;
#ifdef RIDGE_CHECKED
  static_cast<FaultPlace&>(checks) = g_fault_place;
#endif
  return checks;
}

}  // namespace ridge::device
