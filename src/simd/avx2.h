#pragma once
// simd/simd.h for AVX2 with FMA and F16C: two 256-bit registers for 16 lanes.

#include <immintrin.h>

namespace ridge::RIDGE_ISA::simd {

inline constexpr bool kFastBf16 = false;

struct F32 {
  __m256 a, b;
};
struct I32 {
  __m256i a, b;
};
struct B64 {
  __m256i a, b;
};

/// Lanes first … first + 7 that are below n, as a mask.
inline __m256i live(int n, int start) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n - start), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline F32 set1(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F32 zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline F32 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline F32 load(const float* p, int n) {
  return {_mm256_maskload_ps(p, live(n, 0)), _mm256_maskload_ps(p + 8, live(n, 8))};
}
inline __m256 widen_bf16(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
inline __m128i load8(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
inline F32 load(const bf16* p) {
  return {widen_bf16(load8(p)), widen_bf16(load8(p + 8))};
}
inline F32 load(const f16* p) {
  return {_mm256_cvtph_ps(load8(p)), _mm256_cvtph_ps(load8(p + 8))};
}
inline __m256 widen_i8(const int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline F32 load(const int8_t* p) {
  return {widen_i8(p), widen_i8(p + 8)};
}
/// No masked loads of 1 and 2 bytes in this set: through a copy.
template <class T>
inline F32 load(const T* p, int n) {
  T copy[16] = {};
  std::memcpy(copy, p, sizeof(T) * static_cast<unsigned>(n));
  return load(copy);
}

inline void store(float* p, F32 x) {
  _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b);
}
inline void store(float* p, F32 x, int n) {
  _mm256_maskstore_ps(p, live(n, 0), x.a), _mm256_maskstore_ps(p + 8, live(n, 8), x.b);
}
inline __m128i narrow_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  rounded =
      _mm256_blendv_epi8(rounded, _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(64)), nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}
inline void store8(void* p, __m128i x) {
  _mm_storeu_si128(static_cast<__m128i*>(p), x);
}
inline void store(bf16* p, F32 x) {
  store8(p, narrow_bf16(x.a)), store8(p + 8, narrow_bf16(x.b));
}
inline void store(f16* p, F32 x) {
  store8(p, _mm256_cvtps_ph(x.a, 0)), store8(p + 8, _mm256_cvtps_ph(x.b, 0));
}
inline void store(int8_t* p, I32 x) {
  const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
  store8(p, _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
}
template <class T, class V>
inline void store(T* p, V x, int n) {
  T copy[16];
  store(copy, x);
  std::memcpy(p, copy, sizeof(T) * static_cast<unsigned>(n));
}

inline F32 operator+(F32 x, F32 y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
inline F32 operator-(F32 x, F32 y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
inline F32 operator*(F32 x, F32 y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
inline F32 operator/(F32 x, F32 y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
inline F32 fma(F32 x, F32 y, F32 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline F32 max(F32 x, F32 y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
inline F32 min(F32 x, F32 y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
inline F32 abs(F32 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline F32 zero_where_less(F32 x, F32 limit, F32 y) {
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_LT_OQ), y.a),
          _mm256_andnot_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_LT_OQ), y.b)};
}
inline F32 keep_first(F32 x, int n, F32 other) {
  return {_mm256_blendv_ps(other.a, x.a, _mm256_castsi256_ps(live(n, 0))),
          _mm256_blendv_ps(other.b, x.b, _mm256_castsi256_ps(live(n, 8)))};
}
inline float sum(F32 x) {
  const __m256 h = _mm256_add_ps(x.a, x.b);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
inline float max_of(F32 x) {
  const __m256 h = _mm256_max_ps(x.a, x.b);
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

inline I32 set1_i32(int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
inline I32 zero_i32() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
inline B64 load_bytes(const void* p) {
  const auto* q = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
inline I32 load(const int32_t* p) {
  const B64 x = load_bytes(p);
  return {x.a, x.b};
}
inline void store(int32_t* p, I32 x) {
  auto* q = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(q, x.a), _mm256_storeu_si256(q + 1, x.b);
}
inline I32 operator+(I32 x, I32 y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
inline I32 operator-(I32 x, I32 y) {
  return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}
inline I32 operator*(I32 x, I32 y) {
  return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)};
}
inline I32 shift_right(I32 x, int n) {
  return {_mm256_srai_epi32(x.a, n), _mm256_srai_epi32(x.b, n)};
}
inline F32 to_f32(I32 x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
inline I32 round_to_i32(F32 x) {
  return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}
inline F32 pow2(I32 n) {
  const I32 e = n + set1_i32(127);
  return {_mm256_castsi256_ps(_mm256_slli_epi32(e.a, 23)), _mm256_castsi256_ps(_mm256_slli_epi32(e.b, 23))};
}
inline int32_t sum(I32 x) {
  const __m256i h = _mm256_add_epi32(x.a, x.b);
  __m128i q = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
  q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xb1)));
}

inline B64 operator&(B64 x, B64 y) {
  return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
inline B64 operator|(B64 x, B64 y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
inline B64 operator^(B64 x, B64 y) {
  return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
inline B64 set1_byte(uint8_t x) {
  const __m256i v = _mm256_set1_epi8(static_cast<char>(x));
  return {v, v};
}
template <int n>
inline B64 shift_right_bytes(B64 x) {
  const B64 shifted{_mm256_srli_epi16(x.a, n), _mm256_srli_epi16(x.b, n)};
  return shifted & set1_byte(static_cast<uint8_t>(0xff >> n));
}
inline B64 broadcast4(const void* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm256_set1_epi32(four), _mm256_set1_epi32(four)};
}
/// Exact for all byte values: maddubs would saturate when both bytes of a pair are large, so even and odd
/// bytes are multiplied as 16-bit numbers.
inline __m256i dot4_half(__m256i acc, __m256i u8, __m256i s8) {
  const __m256i even_u = _mm256_and_si256(u8, _mm256_set1_epi16(255)), odd_u = _mm256_srli_epi16(u8, 8);
  const __m256i even_s = _mm256_srai_epi16(_mm256_slli_epi16(s8, 8), 8), odd_s = _mm256_srai_epi16(s8, 8);
  return _mm256_add_epi32(
      acc, _mm256_add_epi32(_mm256_madd_epi16(even_u, even_s), _mm256_madd_epi16(odd_u, odd_s)));
}
inline I32 dot4(I32 acc, B64 u8, B64 s8) {
  return {dot4_half(acc.a, u8.a, s8.a), dot4_half(acc.b, u8.b, s8.b)};
}
/// The same for unsigned bytes up to 127, where no pair can saturate.
inline __m256i dot4_small_half(__m256i acc, __m256i u8, __m256i s8) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u8, s8), _mm256_set1_epi16(1)));
}
inline I32 dot4_small(I32 acc, B64 u8, B64 s8) {
  return {dot4_small_half(acc.a, u8.a, s8.a), dot4_small_half(acc.b, u8.b, s8.b)};
}
inline F32 low_bf16(B64 x) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(x.a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(x.b, 16))};
}
inline F32 high_bf16(B64 x) {
  const __m256i top = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(x.a, top)), _mm256_castsi256_ps(_mm256_and_si256(x.b, top))};
}
inline F32 dot2_bf16(F32 acc, B64 x, B64 y) {
  return fma(low_bf16(x), low_bf16(y), fma(high_bf16(x), high_bf16(y), acc));
}
template <int j>
inline I32 byte_of_lane(B64 x) {
  const __m256i low = _mm256_set1_epi32(255);
  return {_mm256_and_si256(_mm256_srli_epi32(x.a, 8 * j), low),
          _mm256_and_si256(_mm256_srli_epi32(x.b, 8 * j), low)};
}

/// How many F32 (two registers each) the register file holds: sizes register blocks.
inline constexpr int kF32Registers = 8;
/// Lanes outside [from, to) become `other`.
inline F32 keep_range(F32 x, int from, int to, F32 other) {
  return keep_first(keep_first(other, from, x), to, other);
}
/// Lanes 2i and 2i + 1 change places.
inline F32 swap_pairs(F32 x) {
  return {_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)};
}
/// Reads n of 64 bytes; the others are 0.
inline B64 load_bytes(const void* p, int n) {
  alignas(32) uint8_t copy[64] = {};
  std::memcpy(copy, p, static_cast<unsigned>(n));
  return load_bytes(copy);
}
inline void transpose8(__m256i (&r)[8]) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = _mm256_unpacklo_epi64(a[i + j], a[i + j + 2]);
      b[i + 2 * j + 1] = _mm256_unpackhi_epi64(a[i + j], a[i + j + 2]);
    }
  for (int c = 0; c < 4; ++c) {
    r[c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x20);
    r[4 + c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x31);
  }
}
/// Row i, lane j of a 16 x 16 square of four-byte lanes changes places with row j, lane i.
inline void transpose(B64 (&r)[16]) {
  __m256i quarter[4][8];  // rows 0-7 low and high lanes, rows 8-15 low and high lanes
  for (int i = 0; i < 8; ++i) {
    quarter[0][i] = r[i].a, quarter[1][i] = r[i].b;
    quarter[2][i] = r[i + 8].a, quarter[3][i] = r[i + 8].b;
  }
  for (auto& q : quarter) transpose8(q);
  for (int i = 0; i < 8; ++i) {
    r[i] = {quarter[0][i], quarter[2][i]};
    r[i + 8] = {quarter[1][i], quarter[3][i]};
  }
}
/// The lanes as they are, as floats.
inline F32 lanes_f32(B64 x) {
  return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
inline __m256 widen_low_f16(__m256i x) {
  const __m256i low = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
  return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}
/// The low and the high f16 of each lane's pair, widened.
inline F32 low_f16(B64 x) {
  return {widen_low_f16(x.a), widen_low_f16(x.b)};
}
inline F32 high_f16(B64 x) {
  return {widen_low_f16(_mm256_srli_epi32(x.a, 16)), widen_low_f16(_mm256_srli_epi32(x.b, 16))};
}
/// Signed byte `j` of each lane.
template <int j>
inline F32 signed_byte_of_lane(B64 x) {
  return {_mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(x.a, 24 - 8 * j), 24)),
          _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(x.b, 24 - 8 * j), 24))};
}
template <int n, uint8_t mask>
inline B64 take_bits(B64 x) {
  constexpr int left = n >= 0 ? n : 0, right = n < 0 ? -n : 0;
  if constexpr (n >= 0)
    return B64{_mm256_slli_epi16(x.a, left), _mm256_slli_epi16(x.b, left)} & set1_byte(mask);
  else
    return B64{_mm256_srli_epi16(x.a, right), _mm256_srli_epi16(x.b, right)} & set1_byte(mask);
}
inline I32 load_i32(const int8_t* p) {
  const __m128i bytes = load8(p);
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))};
}
/// Bit i: lane i of x is at least that of limit; NaN is not.
inline uint32_t at_least(F32 x, F32 limit) {
  const int low = _mm256_movemask_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_GE_OQ));
  const int high = _mm256_movemask_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_GE_OQ));
  return static_cast<uint32_t>(low | high << 8);
}
/// 2^n and *fraction = y - n, |fraction| <= 1/2, n integral, for y in [-127, 0]; n = -127 gives 0.
/// Adding 1.5 * 2^23 + 127 leaves n + 127, an exponent, in the low bits.
inline __m256 split_pow2(__m256 y, __m256* fraction) {
  const __m256 magic = _mm256_set1_ps(12583039.0f), t = _mm256_add_ps(y, magic);
  *fraction = _mm256_sub_ps(y, _mm256_sub_ps(t, magic));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t), 23));
}
inline F32 split_pow2(F32 y, F32* fraction) {
  return {split_pow2(y.a, &fraction->a), split_pow2(y.b, &fraction->b)};
}

}  // namespace ridge::RIDGE_ISA::simd
