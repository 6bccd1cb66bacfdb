#pragma once
// One block of 64 keys against a few query rows: the arithmetic of attention. Included by *_cpu.cc files
// alone.
//
// Keys lie transposed, [head_dim][64] f32, so that lanes are keys and a score is one chain of fused
// multiply-adds over head_dim; an output element is one chain over the keys. No order depends on which rows
// share a call.

#include <algorithm>
#include <cstddef>

#include "simd/simd.h"

namespace ridge::RIDGE_ISA::attention {

inline constexpr int kBlock = 64;  // keys
inline constexpr int kKeyVectors = kBlock / simd::kLanes;

// Register blocks: rows x vectors of sums, plus the vectors and a broadcast, fit the register file
// (AVX-512: 6 x 4 + 4 + 1 = 29 of 32).
inline constexpr int kRows = simd::kF32Registers >= 32 ? 6 : simd::kF32Registers >= 8 ? 2 : 1;
inline constexpr int kVectors = simd::kF32Registers >= 32 ? 4 : 2;

/// The elements of type T in four-byte lanes, widened one by one.
inline void widen(simd::B64 v, const float*, simd::F32* out) {
  out[0] = simd::lanes_f32(v);
}
inline void widen(simd::B64 v, const bf16*, simd::F32* out) {
  out[0] = simd::low_bf16(v), out[1] = simd::high_bf16(v);
}
inline void widen(simd::B64 v, const f16*, simd::F32* out) {
  out[0] = simd::low_f16(v), out[1] = simd::high_f16(v);
}
inline void widen(simd::B64 v, const int8_t*, simd::F32* out) {
  out[0] = simd::signed_byte_of_lane<0>(v), out[1] = simd::signed_byte_of_lane<1>(v);
  out[2] = simd::signed_byte_of_lane<2>(v), out[3] = simd::signed_byte_of_lane<3>(v);
}

/// Asks for rows [from, to) of `bytes` each; rows lie on pages in any order, which no hardware prefetcher
/// follows.
inline void prefetch_rows(const void* const* rows, int from, int to, int64_t bytes) {
  for (int key = from; key < to; ++key)
    for (int64_t at = 0; at < bytes; at += 64) simd::prefetch(static_cast<const std::byte*>(rows[key]) + at);
}

/// 16 rows of `elements` (at most 64 bytes of them) into columns of `keys` [elements][64]. With constant
/// bounds the square stays in registers, which halves the time of a block.
template <class T, bool kWhole>
inline void transpose_square(simd::B64 (&square)[16], int64_t elements, float* keys) {
  constexpr int64_t kPerLane = 4 / sizeof(T);
  simd::transpose(square);
#pragma GCC unroll 16
  for (int64_t lane = 0; lane < 16; ++lane) {
    simd::F32 wide[kPerLane];
    widen(square[lane], static_cast<const T*>(nullptr), wide);
#pragma GCC unroll 4
    for (int64_t j = 0; j < kPerLane; ++j)
      if (kWhole || lane * kPerLane + j < elements)
        simd::store(keys + (lane * kPerLane + j) * kBlock, wide[j]);
  }
}

/// Keys [group, group + 16) into columns [group, group + 16) of keys [head_dim][64]; those outside [from, to)
/// become 0.
template <class T>
void transpose_keys(const T* const* rows /* [64] */, int group, int from, int to, int64_t head_dim,
                    float* keys) {
  constexpr int64_t kChunk = 64 / sizeof(T);
  simd::B64 square[16];
  int64_t i = 0;
  if (group >= from && group + 16 <= to)
    for (; i + kChunk <= head_dim; i += kChunk) {
#pragma GCC unroll 16
      for (int k = 0; k < 16; ++k) square[k] = simd::load_bytes(rows[group + k] + i);
      transpose_square<T, true>(square, kChunk, keys + i * kBlock + group);
    }
  for (; i < head_dim; i += kChunk) {
    const int64_t elements = std::min(kChunk, head_dim - i);
    for (int k = 0; k < 16; ++k) {
      const int key = group + k;
      square[k] =
          key < from || key >= to
              ? simd::set1_byte(0)
              : simd::load_bytes(rows[key] + i, static_cast<int>(elements * static_cast<int64_t>(sizeof(T))));
    }
    transpose_square<T, false>(square, elements, keys + i * kBlock + group);
  }
}

/// values [64][padded] f32 from the rows of live keys; columns from head_dim on become 0.
template <class T>
void widen_values(const T* const* rows /* [64] */, int from, int to, int64_t head_dim, int64_t padded,
                  float* values) {
  for (int key = from; key < to; ++key)
    for (int64_t i = 0; i < padded; i += simd::kLanes) {
      const int64_t left = head_dim - i;
      simd::store(values + key * padded + i, left >= simd::kLanes
                                                 ? simd::load(rows[key] + i)
                                                 : simd::load(rows[key] + i, static_cast<int>(left)));
    }
}

/// scores [R][64], vectors [first, first + N) of keys: q [R][head_dim] times the transposed keys.
template <int R, int N>
void score(const float* q, const float* keys, int64_t head_dim, int first, float* scores) {
  simd::F32 sums[R][N];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) sums[r][n] = simd::zero();
  const float* at = keys + first * simd::kLanes;
  for (int64_t i = 0; i < head_dim; ++i, at += kBlock) {
    simd::F32 key[N];
    for (int n = 0; n < N; ++n) key[n] = simd::load(at + n * simd::kLanes);
    for (int r = 0; r < R; ++r) {
      const auto element = simd::set1(q[r * head_dim + i]);
      for (int n = 0; n < N; ++n) sums[r][n] = simd::fma(element, key[n], sums[r][n]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) simd::store(scores + r * kBlock + (first + n) * simd::kLanes, sums[r][n]);
}

/// Values as they are stored, read row by row; whole vectors only.
template <class T>
struct StoredValues {
  const T* const* rows;
  simd::F32 load(int key, int64_t column) const { return simd::load(rows[key] + column); }
};
/// Values that widen_values wrote.
struct WidenedValues {
  const float* values;
  int64_t padded;
  simd::F32 load(int key, int64_t column) const { return simd::load(values + key * padded + column); }
};

/// o[R][padded], columns [column, column + 16 N): o = o * rescale + weights [R][64] times the values of keys
/// [from, to).
template <int R, int N, class Values>
void accumulate(const float* weights, const float* rescale, const Values& values, int from, int to,
                int64_t column, int64_t padded, float* o) {
  simd::F32 sums[R][N];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      sums[r][n] = simd::load(o + r * padded + column + n * simd::kLanes) * simd::set1(rescale[r]);
  for (int key = from; key < to; ++key) {
    simd::F32 value[N];
    for (int n = 0; n < N; ++n) value[n] = values.load(key, column + n * simd::kLanes);
    for (int r = 0; r < R; ++r) {
      const auto weight = simd::set1(weights[r * kBlock + key]);
      for (int n = 0; n < N; ++n) sums[r][n] = simd::fma(weight, value[n], sums[r][n]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) simd::store(o + r * padded + column + n * simd::kLanes, sums[r][n]);
}

}  // namespace ridge::RIDGE_ISA::attention
