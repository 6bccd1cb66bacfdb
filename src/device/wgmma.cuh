#pragma once
// The matrix step of a warpgroup: d += a · bᵀ, asynchronously. a, b: descriptors of operands in shared
// memory, k innermost, 64 rows of a and n of b. Fragment: warp w has rows 16 w …, its columns 8 j … as four
// values of m16n8k16. A step of 16 elements of 16 bits, or of 32 of 8, adds 32 bytes to both addresses.

#include <cstdint>

namespace ridge::device::ptx {

// The registers of d as operands, and their numbers in the text.
#define RIDGE_D8(C, i) \
  C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3]), C(d[i + 4]), C(d[i + 5]), C(d[i + 6]), C(d[i + 7])
#define RIDGE_D16(C) RIDGE_D8(C, 0), RIDGE_D8(C, 8)
#define RIDGE_D32(C) RIDGE_D16(C), RIDGE_D8(C, 16), RIDGE_D8(C, 24)
#define RIDGE_D48(C) RIDGE_D32(C), RIDGE_D8(C, 32), RIDGE_D8(C, 40)
#define RIDGE_D64(C) RIDGE_D48(C), RIDGE_D8(C, 48), RIDGE_D8(C, 56)
#define RIDGE_D96(C) RIDGE_D64(C), RIDGE_D8(C, 64), RIDGE_D8(C, 72), RIDGE_D8(C, 80), RIDGE_D8(C, 88)
#define RIDGE_D112(C) RIDGE_D96(C), RIDGE_D8(C, 96), RIDGE_D8(C, 104)
#define RIDGE_D128(C) RIDGE_D112(C), RIDGE_D8(C, 112), RIDGE_D8(C, 120)
#define RIDGE_N16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define RIDGE_N32 \
  RIDGE_N16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define RIDGE_N48 \
  RIDGE_N32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define RIDGE_N64 \
  RIDGE_N48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define RIDGE_N96                                                                    \
  RIDGE_N64                                                                          \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define RIDGE_N112 \
  RIDGE_N96        \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define RIDGE_N128 \
  RIDGE_N112       \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define RIDGE_WGMMA(name, Sum, count, C, instruction, operands)                                 \
  __device__ __forceinline__ void name(Sum(&d)[count], uint64_t a, uint64_t b) {                \
    asm volatile("wgmma.mma_async.sync.aligned." instruction " {" RIDGE_N##count "}, " operands \
                 : RIDGE_D##count(C)                                                            \
                 : "l"(a), "l"(b)                                                               \
                 : "memory");                                                                   \
  }
// a: the fragment of m16n8k16 for each warp, instead of a descriptor; b: k outermost, so d += a · b.
#define RIDGE_WGMMA_REGISTERS(name, count, instruction, operands)                               \
  __device__ __forceinline__ void name(float(&d)[count], const uint32_t(&a)[4], uint64_t b) {   \
    asm volatile("wgmma.mma_async.sync.aligned." instruction " {" RIDGE_N##count "}, " operands \
                 : RIDGE_D##count("+f")                                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)                           \
                 : "memory");                                                                   \
  }

// After the descriptors: d is added to (or, "set", begun with 0), and neither operand negated; of 16 bits,
// nor transposed.
RIDGE_WGMMA(wgmma_m64n64k16_bf16, float, 32, "+f", "m64n64k16.f32.bf16.bf16", "%32, %33, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n64k16_f16, float, 32, "+f", "m64n64k16.f32.f16.f16", "%32, %33, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n32k16_bf16, float, 16, "+f", "m64n32k16.f32.bf16.bf16", "%16, %17, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n32k16_f16, float, 16, "+f", "m64n32k16.f32.f16.f16", "%16, %17, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n96k16_bf16, float, 48, "+f", "m64n96k16.f32.bf16.bf16", "%48, %49, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n224k16_bf16, float, 112, "+f", "m64n224k16.f32.bf16.bf16", "%112, %113, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n128k16_bf16, float, 64, "+f", "m64n128k16.f32.bf16.bf16", "%64, %65, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_m64n128k16_f16, float, 64, "+f", "m64n128k16.f32.f16.f16", "%64, %65, 1, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_set_m64n64k16_bf16, float, 32, "=f", "m64n64k16.f32.bf16.bf16", "%32, %33, 0, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_set_m64n64k16_f16, float, 32, "=f", "m64n64k16.f32.f16.f16", "%32, %33, 0, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_set_m64n128k16_bf16, float, 64, "=f", "m64n128k16.f32.bf16.bf16",
            "%64, %65, 0, 1, 1, 0, 0;")
RIDGE_WGMMA(wgmma_set_m64n128k16_f16, float, 64, "=f", "m64n128k16.f32.f16.f16", "%64, %65, 0, 1, 1, 0, 0;")
/// FP8 E4M3 (OCP 8-bit floating point, 2023), f32 sums.
RIDGE_WGMMA(wgmma_m64n64k32_e4m3, float, 32, "+f", "m64n64k32.f32.e4m3.e4m3", "%32, %33, 1, 1, 1;")
/// Signed bytes, exact i32 sums, modulo 2^32.
RIDGE_WGMMA(wgmma_m64n64k32_s8, int32_t, 32, "+r", "m64n64k32.s32.s8.s8", "%32, %33, 1;")

RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n64k16_bf16, 32, "m64n64k16.f32.bf16.bf16",
                      "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;")
RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n64k16_f16, 32, "m64n64k16.f32.f16.f16",
                      "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;")
RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n128k16_bf16, 64, "m64n128k16.f32.bf16.bf16",
                      "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;")
RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n128k16_f16, 64, "m64n128k16.f32.f16.f16",
                      "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;")
RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n192k16_bf16, 96, "m64n192k16.f32.bf16.bf16",
                      "{%96, %97, %98, %99}, %100, 1, 1, 1, 1;")
RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n192k16_f16, 96, "m64n192k16.f32.f16.f16",
                      "{%96, %97, %98, %99}, %100, 1, 1, 1, 1;")
RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n256k16_bf16, 128, "m64n256k16.f32.bf16.bf16",
                      "{%128, %129, %130, %131}, %132, 1, 1, 1, 1;")
RIDGE_WGMMA_REGISTERS(wgmma_registers_m64n256k16_f16, 128, "m64n256k16.f32.f16.f16",
                      "{%128, %129, %130, %131}, %132, 1, 1, 1, 1;")

#undef RIDGE_WGMMA_REGISTERS
#undef RIDGE_WGMMA
#undef RIDGE_N128
#undef RIDGE_N112
#undef RIDGE_N96
#undef RIDGE_N64
#undef RIDGE_N48
#undef RIDGE_N32
#undef RIDGE_N16
#undef RIDGE_D128
#undef RIDGE_D112
#undef RIDGE_D96
#undef RIDGE_D64
#undef RIDGE_D48
#undef RIDGE_D32
#undef RIDGE_D16
#undef RIDGE_D8

}  // namespace ridge::device::ptx
