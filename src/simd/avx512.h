#pragma once
// simd/simd.h for AVX-512 (F, BW, VL, DQ, VNNI, BF16, VBMI).

#include <immintrin.h>

namespace ridge::RIDGE_ISA::simd {

/// Whether dot2_bf16 is one instruction.
inline constexpr bool kFastBf16 = true;

struct F32 {
  __m512 v;
};
struct I32 {
  __m512i v;
};
struct B64 {
  __m512i v;
};

inline __mmask16 first(int n) {
  return static_cast<__mmask16>((1u << n) - 1);
}

inline F32 set1(float x) {
  return {_mm512_set1_ps(x)};
}
inline F32 zero() {
  return {_mm512_setzero_ps()};
}
inline F32 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline F32 load(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first(n), p)};
}
inline F32 widen_bf16(__m256i h) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
}
inline F32 load(const bf16* p) {
  return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline F32 load(const bf16* p, int n) {
  return widen_bf16(_mm256_maskz_loadu_epi16(first(n), p));
}
inline F32 load(const f16* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline F32 load(const f16* p, int n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p))};
}
inline F32 load(const int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline F32 load(const int8_t* p, int n) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first(n), p)))};
}

inline void store(float* p, F32 a) {
  _mm512_storeu_ps(p, a.v);
}
inline void store(float* p, F32 a, int n) {
  _mm512_mask_storeu_ps(p, first(n), a.v);
}
inline __m256i narrow_bf16(F32 a) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.v));
}
inline void store(bf16* p, F32 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(a));
}
inline void store(bf16* p, F32 a, int n) {
  _mm256_mask_storeu_epi16(p, first(n), narrow_bf16(a));
}
inline __m256i narrow_f16(F32 a) {
  return _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline void store(f16* p, F32 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_f16(a));
}
inline void store(f16* p, F32 a, int n) {
  _mm256_mask_storeu_epi16(p, first(n), narrow_f16(a));
}
/// Saturating.
inline void store(int8_t* p, I32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a.v));
}
inline void store(int8_t* p, I32 a, int n) {
  _mm512_mask_cvtsepi32_storeu_epi8(p, first(n), a.v);
}

inline F32 operator+(F32 a, F32 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline F32 operator-(F32 a, F32 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline F32 operator*(F32 a, F32 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline F32 operator/(F32 a, F32 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}  // a b + c
/// NaN in b stays NaN.
inline F32 max(F32 a, F32 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline F32 min(F32 a, F32 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline F32 abs(F32 a) {
  return {_mm512_abs_ps(a.v)};
}
inline F32 zero_where_less(F32 x, F32 limit, F32 y) {
  return {_mm512_mask_mov_ps(y.v, _mm512_cmp_ps_mask(x.v, limit.v, _CMP_LT_OQ), _mm512_setzero_ps())};
}
/// Lanes from n on become `other`.
inline F32 keep_first(F32 a, int n, F32 other) {
  return {_mm512_mask_mov_ps(other.v, first(n), a.v)};
}
inline float sum(F32 a) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
inline float max_of(F32 a) {
  return _mm512_reduce_max_ps(a.v);
}

inline I32 set1_i32(int32_t x) {
  return {_mm512_set1_epi32(x)};
}
inline I32 zero_i32() {
  return {_mm512_setzero_si512()};
}
inline I32 load(const int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
inline void store(int32_t* p, I32 a) {
  _mm512_storeu_si512(p, a.v);
}
inline I32 operator+(I32 a, I32 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
inline I32 operator-(I32 a, I32 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
inline I32 operator*(I32 a, I32 b) {
  return {_mm512_mullo_epi32(a.v, b.v)};
}
inline I32 shift_right(I32 a, int n) {
  return {_mm512_srai_epi32(a.v, static_cast<unsigned>(n))};
}
inline F32 to_f32(I32 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
inline I32 round_to_i32(F32 a) {
  return {_mm512_cvtps_epi32(a.v)};
}
/// 2^n for n in [-126, 127].
inline F32 pow2(I32 n) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n.v, _mm512_set1_epi32(127)), 23))};
}
inline int32_t sum(I32 a) {
  return _mm512_reduce_add_epi32(a.v);
}

inline B64 load_bytes(const void* p) {
  return {_mm512_loadu_si512(p)};
}
inline B64 operator&(B64 a, B64 b) {
  return {_mm512_and_si512(a.v, b.v)};
}
inline B64 operator|(B64 a, B64 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
inline B64 operator^(B64 a, B64 b) {
  return {_mm512_xor_si512(a.v, b.v)};
}
inline B64 set1_byte(uint8_t x) {
  return {_mm512_set1_epi8(static_cast<char>(x))};
}
/// Each byte shifted right by n, zeros in.
template <int n>
inline B64 shift_right_bytes(B64 a) {
  return {_mm512_and_si512(_mm512_srli_epi16(a.v, n), _mm512_set1_epi8(static_cast<char>(0xff >> n)))};
}
/// Every lane's four bytes are the same four from memory.
inline B64 broadcast4(const void* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm512_set1_epi32(four)};
}
/// Each lane: acc + sum of four unsigned x signed products, exact for all byte values.
inline I32 dot4(I32 acc, B64 u8, B64 s8) {
  return {_mm512_dpbusd_epi32(acc.v, u8.v, s8.v)};
}
inline I32 dot4_small(I32 acc, B64 u8, B64 s8) {
  return dot4(acc, u8, s8);
}  // u8 <= 127
/// Each lane: acc + two bf16 products, in f32 (the instruction's own rounding and flushing of subnormals).
inline F32 dot2_bf16(F32 acc, B64 a, B64 b) {
  return {_mm512_dpbf16_ps(acc.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v))};
}
/// The even (low) and odd (high) bf16 of each lane's pair, widened.
inline F32 low_bf16(B64 a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(a.v, 16))};
}
inline F32 high_bf16(B64 a) {
  return {_mm512_castsi512_ps(_mm512_and_si512(a.v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
/// Byte `j` of each lane as an unsigned integer.
template <int j>
inline I32 byte_of_lane(B64 a) {
  return {_mm512_and_si512(_mm512_srli_epi32(a.v, 8 * j), _mm512_set1_epi32(255))};
}

/// How many F32 the register file holds: sizes register blocks.
inline constexpr int kF32Registers = 32;
/// Lanes outside [from, to) become `other`.
inline F32 keep_range(F32 a, int from, int to, F32 other) {
  return {_mm512_mask_mov_ps(other.v, static_cast<__mmask16>(first(to) & ~first(from)), a.v)};
}
/// Lanes 2i and 2i + 1 change places.
inline F32 swap_pairs(F32 a) {
  return {_mm512_permute_ps(a.v, 0xb1)};
}
/// Reads n of 64 bytes; the others are 0.
inline B64 load_bytes(const void* p, int n) {
  return {_mm512_maskz_loadu_epi8(n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1, p)};
}
/// Row i, lane j of a 16 x 16 square of four-byte lanes changes places with row j, lane i.
inline void transpose(B64 (&r)[16]) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(r[i].v, r[i + 1].v);
    a[i + 1] = _mm512_unpackhi_epi32(r[i].v, r[i + 1].v);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = _mm512_unpacklo_epi64(a[i + j], a[i + j + 2]);
      b[i + 2 * j + 1] = _mm512_unpackhi_epi64(a[i + j], a[i + j + 2]);
    }
  // b[4g + c] holds, in its 128-bit part p, column 4p + c of rows 4g … 4g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i even01 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
    const __m512i even23 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
    r[c].v = _mm512_shuffle_i32x4(even01, even23, 0x88);
    r[8 + c].v = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    r[4 + c].v = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    r[12 + c].v = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
  }
}
/// The lanes as they are, as floats.
inline F32 lanes_f32(B64 a) {
  return {_mm512_castsi512_ps(a.v)};
}
/// The low and the high f16 of each lane's pair, widened.
inline F32 low_f16(B64 a) {
  return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(a.v))};
}
inline F32 high_f16(B64 a) {
  return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(a.v, 16)))};
}
/// Signed byte `j` of each lane.
template <int j>
inline F32 signed_byte_of_lane(B64 a) {
  return {_mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(a.v, 24 - 8 * j), 24))};
}
/// Each byte shifted left by n (right by -n) and masked. `mask` must leave out what a neighbouring byte would
/// shift in.
template <int n, uint8_t mask>
inline B64 take_bits(B64 a) {
  constexpr unsigned left = n >= 0 ? n : 0, right = n < 0 ? -n : 0;
  const __m512i moved = n >= 0 ? _mm512_slli_epi16(a.v, left) : _mm512_srli_epi16(a.v, right);
  return {_mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(mask)))};
}
/// 16 signed bytes, widened.
inline I32 load_i32(const int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
/// Bit i: lane i of x is at least that of limit; NaN is not.
inline uint32_t at_least(F32 x, F32 limit) {
  return _mm512_cmp_ps_mask(x.v, limit.v, _CMP_GE_OQ);
}
/// 2^n and *fraction = y - n, |fraction| <= 1/2, n integral, for y in [-127, 0]; n = -127 gives 0.
/// Adding 1.5 * 2^23 + 127 leaves n + 127, an exponent, in the low bits.
inline F32 split_pow2(F32 y, F32* fraction) {
  const __m512 magic = _mm512_set1_ps(12583039.0f), t = _mm512_add_ps(y.v, magic);
  fraction->v = _mm512_sub_ps(y.v, _mm512_sub_ps(t, magic));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(t), 23))};
}

}  // namespace ridge::RIDGE_ISA::simd
