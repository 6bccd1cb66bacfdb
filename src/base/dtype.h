#pragma once
// Element types of tensors. Block-quantized types are named as GGUF names them; their bit layouts are in
// tensor/blocks.h (source: the GGUF specification and ggml's public block definitions).

#include <cmath>
#include <cstdint>
#include <cstring>

namespace ridge {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kI8,
  kU8,
  kI32,
  kI64,
  kBool,
  kQ8_0,  // 32 weights: f16 scale, 32 x i8                                  34 bytes
  kQ4_0,  // 32 weights: f16 scale, 32 x 4 bits, offset 8                    18 bytes
  kQ4_1,  // 32 weights: f16 scale, f16 minimum, 32 x 4 bits                 20 bytes
  kQ5_0,  // 32 weights: f16 scale, 32 high bits, 32 x 4 bits, offset 16     22 bytes
  kQ4_K,  // 256 weights: f16 scale and minimum, 8 x (6 + 6) bits, 4 bits    144 bytes
  kQ6_K,  // 256 weights: 4 + 2 bits, 16 x i8 scale, f16 scale               210 bytes
};
using enum DType;
inline constexpr int kDTypeCount = 14;

const char* dtype_name(DType dtype);     // "f32", "q4_1", ...
int64_t dtype_block(DType dtype);        // elements in a block; 1 for plain types
int64_t dtype_block_bytes(DType dtype);  // bytes of a block
constexpr bool is_block_quantized(DType d) {
  return d >= kQ8_0;
}
constexpr bool is_index(DType d) {
  return d == kI32 || d == kI64;
}

/// bfloat16, rounded to nearest even; NaN stays NaN.
struct bf16 {
  uint16_t bits;
};
/// IEEE half precision.
struct f16 {
  uint16_t bits;
};

inline float to_f32(float v) {
  return v;
}
inline float to_f32(bf16 v) {
  const uint32_t bits = uint32_t{v.bits} << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}
inline float to_f32(f16 v) {
  const uint32_t sign = uint32_t{v.bits} >> 15 << 31, exponent = v.bits >> 10 & 31, fraction = v.bits & 1023;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}
inline bf16 to_bf16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(bits >> 16 | 64)};  // quiet NaN
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
f16 to_f16(float v);  // round to nearest even

template <class T>
constexpr DType no_dtype() {
  static_assert(sizeof(T) == 0, "kDTypeOf: no operator has elements of this type");
  return {};
}
template <class T>
inline constexpr DType kDTypeOf = no_dtype<T>();
template <>
inline constexpr DType kDTypeOf<bool> = kBool;
template <>
inline constexpr DType kDTypeOf<float> = kF32;
template <>
inline constexpr DType kDTypeOf<f16> = kF16;
template <>
inline constexpr DType kDTypeOf<bf16> = kBF16;
template <>
inline constexpr DType kDTypeOf<int8_t> = kI8;
template <>
inline constexpr DType kDTypeOf<uint8_t> = kU8;
template <>
inline constexpr DType kDTypeOf<int32_t> = kI32;
template <>
inline constexpr DType kDTypeOf<int64_t> = kI64;

}  // namespace ridge
