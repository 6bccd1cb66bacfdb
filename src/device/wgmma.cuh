#pragma once
// The matrix step of a warpgroup: d += a · bᵀ, asynchronously. a, b: descriptors of operands in shared
// memory, k innermost, 64 rows of a and 64 or 32 of b. Fragment: warp w has rows 16 w …, its columns 8 j … as
// four values of m16n8k16. A step of 16 elements of 16 bits, or of 32 of 8, adds 32 bytes to both addresses.

#include <cstdint>

namespace ridge::device::ptx {

// The registers of d as operands, and their numbers in the text.
#define RIDGE_D8(C, i) \
  C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3]), C(d[i + 4]), C(d[i + 5]), C(d[i + 6]), C(d[i + 7])
#define RIDGE_D16(C) RIDGE_D8(C, 0), RIDGE_D8(C, 8)
#define RIDGE_D32(C) RIDGE_D16(C), RIDGE_D8(C, 16), RIDGE_D8(C, 24)
#define RIDGE_N16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define RIDGE_N32 \
  RIDGE_N16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define RIDGE_WGMMA(name, Sum, count, C, instruction, operands)                                 \
  __device__ __forceinline__ void name(Sum(&d)[count], uint64_t a, uint64_t b) {                \
    asm volatile("wgmma.mma_async.sync.aligned." instruction " {" RIDGE_N##count "}, " operands \
                 : RIDGE_D##count(C)                                                            \
                 : "l"(a), "l"(b)                                                               \
                 : "memory");                                                                   \
  }

// After the descriptors: d is added to, and neither operand negated; of 16 bits, nor transposed.
RIDGE_WGMMA(wgmma_m64n64k16_bf16, float, 32, "+f", "m64n64k16.f32.bf16.bf16", "%32, %33, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n64k16_f16, float, 32, "+f", "m64n64k16.f32.f16.f16", "%32, %33, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n32k16_bf16, float, 16, "+f", "m64n32k16.f32.bf16.bf16", "%16, %17, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n32k16_f16, float, 16, "+f", "m64n32k16.f32.f16.f16", "%16, %17, 1, 1, 1, 0, 0;")
/// FP8 E4M3 (OCP 8-bit floating point, 2023), f32 sums.
RIDGE_WGMMA(wgmma_m64n64k32_e4m3, float, 32, "+f", "m64n64k32.f32.e4m3.e4m3", "%32, %33, 1, 1, 1;")
/// Signed bytes, exact i32 sums, modulo 2^32.
RIDGE_WGMMA(wgmma_m64n64k32_s8, int32_t, 32, "+r", "m64n64k32.s32.s8.s8", "%32, %33, 1;")

#undef RIDGE_WGMMA
#undef RIDGE_N32
#undef RIDGE_N16
#undef RIDGE_D32
#undef RIDGE_D16
#undef RIDGE_D8

}  // namespace ridge::device::ptx
