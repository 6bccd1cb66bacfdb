#pragma once
// The 16 x 8 x 16 matrix step by element type, and who holds what in it. Lane = 4 g + t:
//   a[0], a[2]: row g,     k 2t, 2t+1 and 2t+8, 2t+9      b0, b1: column g, the same k
//   a[1], a[3]: row g + 8, the same k                      d[0], d[1]: row g, columns 2t, 2t+1; d[2], d[3]:
//   row g + 8
// The k of a step may be permuted, if for a and b alike: a lane that holds 8 neighbouring k of its row (16
// bytes) feeds two steps with them, words 0 and 1 the first, words 2 and 3 the second.

#include "base/dtype.h"
#include "device/ptx.cuh"
#include "device/wgmma.cuh"

namespace ridge::device {

template <class T>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static_assert(sizeof(T) == 2, "bf16 or f16");
  if constexpr (kDTypeOf<T> == kBF16)
    ptx::mma_m16n8k16_bf16(d, a, b0, b1);
  else
    ptx::mma_m16n8k16_f16(d, a, b0, b1);
}

/// An operand of wgmma in shared memory: rows of 64 elements of 16 bits (128 bytes), 16-byte places exchanged
/// by swizzle_128(), 8 rows to 1024 bytes, the first aligned to 1024. A step of 16 along k adds 32 bytes to
/// `shared`.
__device__ __forceinline__ uint64_t matrix_descriptor(uint32_t shared) {
  constexpr uint64_t kLeading = 1, kStrideOf8Rows = 1024 >> 4, kSwizzle128 = 1;
  return uint64_t{(shared & 0x3ffff) >> 4} | kLeading << 16 | kStrideOf8Rows << 32 | kSwizzle128 << 62;
}
/// The other way round, k outermost, as b of wgmma_values: rows are k, 64 columns of b to a panel of the form
/// above, panels `panel_bytes` apart. A step of 16 along k adds 2048 bytes to `shared`.
__device__ __forceinline__ uint64_t panels_descriptor(uint32_t shared, uint32_t panel_bytes) {
  constexpr uint64_t kStrideOf8Rows = 1024 >> 4, kSwizzle128 = 1;
  return uint64_t{(shared & 0x3ffff) >> 4} | uint64_t{panel_bytes >> 4} << 16 | kStrideOf8Rows << 32 |
         kSwizzle128 << 62;
}
/// Byte offset of 16-byte place `place` of `row` in such an operand.
__device__ __forceinline__ uint32_t swizzle_128(int row, int place) {
  return row * 128 + ((place ^ (row & 7)) * 16);
}

template <class T>
__device__ __forceinline__ void wgmma_m64n64k16(float (&d)[32], uint64_t a, uint64_t b) {
  if constexpr (kDTypeOf<T> == kBF16)
    ptx::wgmma_m64n64k16_bf16(d, a, b);
  else
    ptx::wgmma_m64n64k16_f16(d, a, b);
}

template <class T>
__device__ __forceinline__ void wgmma_m64n32k16(float (&d)[16], uint64_t a, uint64_t b) {
  if constexpr (kDTypeOf<T> == kBF16)
    ptx::wgmma_m64n32k16_bf16(d, a, b);
  else
    ptx::wgmma_m64n32k16_f16(d, a, b);
}

/// d (+)= a · bᵀ, 64 x n.
template <class T, bool kAdd, int n>
__device__ __forceinline__ void wgmma_scores(float (&d)[n], uint64_t a, uint64_t b) {
  static_assert(n == 32 || n == 64, "64 or 128 columns");
  if constexpr (kDTypeOf<T> == kBF16) {
    if constexpr (n == 32)
      kAdd ? ptx::wgmma_m64n64k16_bf16(d, a, b) : ptx::wgmma_set_m64n64k16_bf16(d, a, b);
    else
      kAdd ? ptx::wgmma_m64n128k16_bf16(d, a, b) : ptx::wgmma_set_m64n128k16_bf16(d, a, b);
  } else {
    if constexpr (n == 32)
      kAdd ? ptx::wgmma_m64n64k16_f16(d, a, b) : ptx::wgmma_set_m64n64k16_f16(d, a, b);
    else
      kAdd ? ptx::wgmma_m64n128k16_f16(d, a, b) : ptx::wgmma_set_m64n128k16_f16(d, a, b);
  }
}

/// d += a · b, 64 x 2n, a in registers, b by panels_descriptor().
template <class T, int n>
__device__ __forceinline__ void wgmma_values(float (&d)[n], const uint32_t (&a)[4], uint64_t b) {
  static_assert(n == 32 || n == 64 || n == 96 || n == 128, "64, 128, 192 or 256 columns");
  if constexpr (kDTypeOf<T> == kBF16) {
    if constexpr (n == 32) ptx::wgmma_registers_m64n64k16_bf16(d, a, b);
    if constexpr (n == 64) ptx::wgmma_registers_m64n128k16_bf16(d, a, b);
    if constexpr (n == 96) ptx::wgmma_registers_m64n192k16_bf16(d, a, b);
    if constexpr (n == 128) ptx::wgmma_registers_m64n256k16_bf16(d, a, b);
  } else {
    if constexpr (n == 32) ptx::wgmma_registers_m64n64k16_f16(d, a, b);
    if constexpr (n == 64) ptx::wgmma_registers_m64n128k16_f16(d, a, b);
    if constexpr (n == 96) ptx::wgmma_registers_m64n192k16_f16(d, a, b);
    if constexpr (n == 128) ptx::wgmma_registers_m64n256k16_f16(d, a, b);
  }
}

}  // namespace ridge::device
