#pragma once
// The CPU vocabulary for kernels: 16 lanes on every instruction set, so that one source serves all of them
// (one 512-bit register, two of 256 bits, or an array that the compiler vectorizes as it can). Included by
// *_cpu.cc files alone, which are compiled once per set in namespace ridge::RIDGE_ISA.
//
//   F32 I32            16 lanes         B64        64 bytes: four per lane
//   load(p, n)         reads n elements and no byte more; lanes from n on are 0. store(p, v, n) likewise.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/dtype.h"

namespace ridge::RIDGE_ISA::simd {
inline constexpr int kLanes = 16;
}

#if defined(RIDGE_ISA_avx512)
#include "simd/avx512.h"
#elif defined(RIDGE_ISA_avx2)
#include "simd/avx2.h"
#else
#include "simd/scalar.h"
#endif

namespace ridge::RIDGE_ISA::simd {

/// Visits [0, n) in steps of 16 lanes: body(i, live) with live = lanes that exist.
template <class Body>
inline void for_each(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, static_cast<int>(n - i));
}

/// On code that is inlined whatever its size, so that its arrays live in registers; plain C++ has no
/// registers to gain, and would take minutes to compile.
#if defined(RIDGE_ISA_scalar)
#define RIDGE_FLATTEN
#else
#define RIDGE_FLATTEN [[gnu::always_inline]]
#endif

/// body(std::integral_constant<int, i>) for i in [0, n), written out, so that arrays indexed by i can live in
/// registers.
template <int n, class Body, int... i>
RIDGE_FLATTEN inline void unrolled(const Body& body, std::integer_sequence<int, i...>) {
  (body(std::integral_constant<int, i>{}), ...);
}
template <int n, class Body>
RIDGE_FLATTEN inline void unrolled(const Body& body) {
  unrolled<n>(body, std::make_integer_sequence<int, n>{});
}

/// e^x, within 2 ulp; 0 below -87.33 (e^-inf is 0), inf above 88.72, NaN stays NaN.
/// Method: x = n ln 2 + r, |r| <= ln 2 / 2; Cody and Waite reduction, degree-6 minimax polynomial of our own
/// fit.
inline F32 exp(F32 x) {
  const F32 clamped = min(set1(89.0f), max(set1(-88.0f), x));
  const I32 n = round_to_i32(clamped * set1(1.44269504f));
  const F32 nf = to_f32(n);
  F32 r = fma(nf, set1(-0.693359375f), clamped);
  r = fma(nf, set1(2.12194440e-4f), r);
  F32 p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  const F32 e = fma(p * r, r, r + set1(1.0f));
  // Two factors, because 2^128 and 2^-127 are out of range for one.
  const I32 half = shift_right(n, 1);
  const F32 y = e * pow2(half) * pow2(n - half);
  return zero_where_less(x, set1(-87.33f), y);
}

/// 1 / (1 + e^-x).
inline F32 sigmoid(F32 x) {
  return set1(1.0f) / (set1(1.0f) + exp(set1(0.0f) - x));
}

/// tanh(x) by e^2x; saturates, NaN stays NaN.
inline F32 tanh(F32 x) {
  const F32 e = exp(min(set1(20.0f), max(set1(-20.0f), x)) * set1(2.0f));
  return (e - set1(1.0f)) / (e + set1(1.0f));
}

/// Asks for the line at p to be brought into L2.
inline void prefetch(const void* p) {
  __builtin_prefetch(p, 0, 2);
}

/// A size made a template argument: body(std::integral_constant<int, n>{}) for n in [1, Max].
template <int Max, class Body>
inline void with_size(int n, const Body& body) {
  if constexpr (Max > 1)
    if (n < Max) return with_size<Max - 1>(n, body);
  body(std::integral_constant<int, Max>{});
}

}  // namespace ridge::RIDGE_ISA::simd
