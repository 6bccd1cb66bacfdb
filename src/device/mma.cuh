#pragma once
// The 16 x 8 x 16 matrix step by element type, and who holds what in it. Lane = 4 g + t:
//   a[0], a[2]: row g,     k 2t, 2t+1 and 2t+8, 2t+9      b0, b1: column g, the same k
//   a[1], a[3]: row g + 8, the same k                      d[0], d[1]: row g, columns 2t, 2t+1; d[2], d[3]:
//   row g + 8
// The k of a step may be permuted, if for a and b alike: a lane that holds 8 neighbouring k of its row (16
// bytes) feeds two steps with them, words 0 and 1 the first, words 2 and 3 the second.

#include "base/dtype.h"
#include "device/ptx.cuh"

namespace ridge::device {

template <class T>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static_assert(sizeof(T) == 2, "bf16 or f16");
  if constexpr (kDTypeOf<T> == kBF16)
    ptx::mma_m16n8k16_bf16(d, a, b0, b1);
  else
    ptx::mma_m16n8k16_f16(d, a, b0, b1);
}

}  // namespace ridge::device
