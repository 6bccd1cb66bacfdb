#pragma once
// Layouts that an operator's pack() makes of weights, once at load.

#include <cstdint>

#include "base/dtype.h"

namespace ridge {

/// A packed layout of a [rows, columns] weight matrix: what a kernel asks for by address of this descriptor.
struct PackedLayout {
  const char* name;                                       // "rows16_q4_1"
  DType from;                                             // the type whose values it holds
  int64_t (*bytes)(int64_t rows, int64_t columns);        // all of it, scales included
  int64_t (*scale_bytes)(int64_t rows, int64_t columns);  // the part that is scales and minima
};

}  // namespace ridge
