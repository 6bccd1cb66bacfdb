#pragma once
// simd/simd.h in plain C++: arrays that the compiler vectorizes for the baseline.

namespace ridge::RIDGE_ISA::simd {

inline constexpr bool kFastBf16 = false;

struct F32 {
  float v[16];
};
struct I32 {
  int32_t v[16];
};
struct B64 {
  uint8_t v[64];
};

template <class R, class F>
inline R each_lane(const F& f) {
  R out;
  for (int i = 0; i < 16; ++i) out.v[i] = f(i);
  return out;
}

inline F32 set1(float x) {
  return each_lane<F32>([&](int) { return x; });
}
inline F32 zero() {
  return set1(0);
}
template <class T>
inline float element(T x) {
  return to_f32(x);
}
inline float element(int8_t x) {
  return x;
}
template <class T>
inline F32 load(const T* p, int n) {
  return each_lane<F32>([&](int i) { return i < n ? element(p[i]) : 0.0f; });
}
template <class T>
inline F32 load(const T* p) {
  return each_lane<F32>([&](int i) { return element(p[i]); });
}
inline I32 load(const int32_t* p) {
  return each_lane<I32>([&](int i) { return p[i]; });
}

inline void store_element(float* p, float x) {
  *p = x;
}
inline void store_element(bf16* p, float x) {
  *p = to_bf16(x);
}
inline void store_element(f16* p, float x) {
  *p = to_f16(x);
}
template <class T>
inline void store(T* p, F32 a, int n = 16) {
  for (int i = 0; i < n; ++i) store_element(p + i, a.v[i]);
}
inline void store(int8_t* p, I32 a, int n = 16) {
  for (int i = 0; i < n; ++i) p[i] = static_cast<int8_t>(a.v[i] < -128 ? -128 : a.v[i] > 127 ? 127 : a.v[i]);
}
inline void store(int32_t* p, I32 a) {
  std::memcpy(p, a.v, 64);
}

inline F32 operator+(F32 a, F32 b) {
  return each_lane<F32>([&](int i) { return a.v[i] + b.v[i]; });
}
inline F32 operator-(F32 a, F32 b) {
  return each_lane<F32>([&](int i) { return a.v[i] - b.v[i]; });
}
inline F32 operator*(F32 a, F32 b) {
  return each_lane<F32>([&](int i) { return a.v[i] * b.v[i]; });
}
inline F32 operator/(F32 a, F32 b) {
  return each_lane<F32>([&](int i) { return a.v[i] / b.v[i]; });
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return each_lane<F32>([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
inline F32 max(F32 a, F32 b) {
  return each_lane<F32>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32 min(F32 a, F32 b) {
  return each_lane<F32>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32 abs(F32 a) {
  return each_lane<F32>([&](int i) { return std::fabs(a.v[i]); });
}
inline F32 zero_where_less(F32 x, F32 limit, F32 y) {
  return each_lane<F32>([&](int i) { return x.v[i] < limit.v[i] ? 0.0f : y.v[i]; });
}
inline F32 keep_first(F32 a, int n, F32 other) {
  return each_lane<F32>([&](int i) { return i < n ? a.v[i] : other.v[i]; });
}
inline float sum(F32 a) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) a.v[i] += a.v[i + half];
  return a.v[0];
}
inline float max_of(F32 a) {
  float m = a.v[0];
  for (int i = 1; i < 16; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}

inline I32 set1_i32(int32_t x) {
  return each_lane<I32>([&](int) { return x; });
}
inline I32 zero_i32() {
  return set1_i32(0);
}
inline I32 operator+(I32 a, I32 b) {
  return each_lane<I32>([&](int i) { return a.v[i] + b.v[i]; });
}
inline I32 operator-(I32 a, I32 b) {
  return each_lane<I32>([&](int i) { return a.v[i] - b.v[i]; });
}
inline I32 operator*(I32 a, I32 b) {
  return each_lane<I32>([&](int i) { return a.v[i] * b.v[i]; });
}
inline I32 shift_right(I32 a, int n) {
  return each_lane<I32>([&](int i) { return a.v[i] >> n; });
}
inline F32 to_f32(I32 a) {
  return each_lane<F32>([&](int i) { return static_cast<float>(a.v[i]); });
}
inline I32 round_to_i32(F32 a) {
  // Out of range and NaN give the smallest integer, as the vector sets do.
  return each_lane<I32>([&](int i) {
    return a.v[i] >= -2147483648.0f && a.v[i] < 2147483648.0f ? static_cast<int32_t>(std::lrint(a.v[i]))
                                                              : INT32_MIN;
  });
}
inline F32 pow2(I32 n) {
  F32 out;
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = (static_cast<uint32_t>(n.v[i]) + 127u) << 23;
    std::memcpy(&out.v[i], &bits, 4);
  }
  return out;
}
inline int32_t sum(I32 a) {
  int32_t s = 0;
  for (const int32_t x : a.v) s += x;
  return s;
}

template <class F>
inline B64 each_byte(const F& f) {
  B64 out;
  for (int i = 0; i < 64; ++i) out.v[i] = static_cast<uint8_t>(f(i));
  return out;
}
inline B64 load_bytes(const void* p) {
  B64 out;
  std::memcpy(out.v, p, 64);
  return out;
}
inline B64 operator&(B64 a, B64 b) {
  return each_byte([&](int i) { return a.v[i] & b.v[i]; });
}
inline B64 operator|(B64 a, B64 b) {
  return each_byte([&](int i) { return a.v[i] | b.v[i]; });
}
inline B64 operator^(B64 a, B64 b) {
  return each_byte([&](int i) { return a.v[i] ^ b.v[i]; });
}
inline B64 set1_byte(uint8_t x) {
  return each_byte([&](int) { return x; });
}
template <int n>
inline B64 shift_right_bytes(B64 a) {
  return each_byte([&](int i) { return a.v[i] >> n; });
}
inline B64 broadcast4(const void* p) {
  B64 out;
  for (int i = 0; i < 16; ++i) std::memcpy(out.v + 4 * i, p, 4);
  return out;
}
inline I32 dot4(I32 acc, B64 u8, B64 s8) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 4; ++j) acc.v[i] += u8.v[4 * i + j] * static_cast<int8_t>(s8.v[4 * i + j]);
  return acc;
}
inline I32 dot4_small(I32 acc, B64 u8, B64 s8) {
  return dot4(acc, u8, s8);
}  // u8 <= 127
inline F32 bf16_of_lane(B64 a, int half) {
  F32 out;
  for (int i = 0; i < 16; ++i) {
    bf16 h;
    std::memcpy(&h, a.v + 4 * i + 2 * half, 2);
    out.v[i] = ridge::to_f32(h);
  }
  return out;
}
inline F32 low_bf16(B64 a) {
  return bf16_of_lane(a, 0);
}
inline F32 high_bf16(B64 a) {
  return bf16_of_lane(a, 1);
}
inline F32 dot2_bf16(F32 acc, B64 a, B64 b) {
  return fma(low_bf16(a), low_bf16(b), fma(high_bf16(a), high_bf16(b), acc));
}
template <int j>
inline I32 byte_of_lane(B64 a) {
  return each_lane<I32>([&](int i) { return a.v[4 * i + j]; });
}

/// How many F32 to keep in flight: sizes register blocks.
inline constexpr int kF32Registers = 4;
/// Lanes outside [from, to) become `other`.
inline F32 keep_range(F32 a, int from, int to, F32 other) {
  return each_lane<F32>([&](int i) { return i >= from && i < to ? a.v[i] : other.v[i]; });
}
/// Lanes 2i and 2i + 1 change places.
inline F32 swap_pairs(F32 a) {
  return each_lane<F32>([&](int i) { return a.v[i ^ 1]; });
}
/// Reads n of 64 bytes; the others are 0.
inline B64 load_bytes(const void* p, int n) {
  B64 out{};
  std::memcpy(out.v, p, static_cast<unsigned>(n));
  return out;
}
/// Row i, lane j of a 16 x 16 square of four-byte lanes changes places with row j, lane i.
inline void transpose(B64 (&r)[16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < i; ++j)
      for (int b = 0; b < 4; ++b) {
        const uint8_t held = r[i].v[4 * j + b];
        r[i].v[4 * j + b] = r[j].v[4 * i + b];
        r[j].v[4 * i + b] = held;
      }
}
/// The lanes as they are, as floats.
inline F32 lanes_f32(B64 a) {
  F32 out;
  std::memcpy(out.v, a.v, 64);
  return out;
}
inline F32 f16_of_lane(B64 a, int half) {
  F32 out;
  for (int i = 0; i < 16; ++i) {
    f16 h;
    std::memcpy(&h, a.v + 4 * i + 2 * half, 2);
    out.v[i] = ridge::to_f32(h);
  }
  return out;
}
/// The low and the high f16 of each lane's pair, widened.
inline F32 low_f16(B64 a) {
  return f16_of_lane(a, 0);
}
inline F32 high_f16(B64 a) {
  return f16_of_lane(a, 1);
}
/// Signed byte `j` of each lane.
template <int j>
inline F32 signed_byte_of_lane(B64 a) {
  return each_lane<F32>([&](int i) { return static_cast<float>(static_cast<int8_t>(a.v[4 * i + j])); });
}
template <int n, uint8_t mask>
inline B64 take_bits(B64 a) {
  return each_byte(
      [&](int i) { return (n >= 0 ? a.v[i] << (n >= 0 ? n : 0) : a.v[i] >> (n < 0 ? -n : 0)) & mask; });
}
inline I32 load_i32(const int8_t* p) {
  return each_lane<I32>([&](int i) { return p[i]; });
}
/// Bit i: lane i of x is at least that of limit; NaN is not.
inline uint32_t at_least(F32 x, F32 limit) {
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= static_cast<uint32_t>(x.v[i] >= limit.v[i]) << i;
  return bits;
}
/// 2^n and *fraction = y - n, |fraction| <= 1/2, n integral, for y in [-127, 0]; n = -127 gives 0.
/// Adding 1.5 * 2^23 + 127 leaves n + 127, an exponent, in the low bits.
inline F32 split_pow2(F32 y, F32* fraction) {
  F32 out;
  for (int i = 0; i < 16; ++i) {
    const float t = y.v[i] + 12583039.0f;
    fraction->v[i] = y.v[i] - (t - 12583039.0f);
    uint32_t bits;
    std::memcpy(&bits, &t, 4);
    bits <<= 23;
    std::memcpy(&out.v[i], &bits, 4);
  }
  return out;
}

}  // namespace ridge::RIDGE_ISA::simd
