// Limit: read and write bandwidth of x, from L2 in an engine step. cos and sin are made once a token and
// shared by its heads; the angle is reduced in 64-bit fixed point, exactly, so there is no library call and
// no large angle.

#include "ops/rope/rope.h"

#include <bit>

#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

constexpr int64_t kTablePairs = 256;

/// cos and sin of up to kTablePairs angles, times the magnitude; for interleaved pairs each value twice, the
/// sines with the sign that their element wants.
struct Table {
  float cos[2 * kTablePairs], sin[2 * kTablePairs];
};

/// frequency / 2 pi as a fraction of a turn in 64 bits; whole turns drop out by themselves.
inline uint64_t turns_per_position(float frequency) {
  const auto bits = std::bit_cast<uint32_t>(frequency);
  const int exponent = static_cast<int>((bits >> 23) & 255) - 127;
  uint64_t fixed;
  if (exponent <= 0 && exponent >= -62) {
    // 2^66 / 2 pi times the 24 bits of the significand: what frequencies are, without the library's floor.
    constexpr uint64_t kInverseTwoPi = 0xa2f9836e4e441529;
    __extension__ using Wide = unsigned __int128;
    const uint64_t significand = (bits & 0x7fffff) | 0x800000;
    fixed = static_cast<uint64_t>((Wide{significand} * kInverseTwoPi) >> (25 - exponent));
  } else {
    constexpr long double kInverseTwoPi = 0.159154943091895335768883763372514362L;
    const long double turns = std::fabs(static_cast<long double>(frequency)) * kInverseTwoPi;
    fixed = static_cast<uint64_t>((turns - std::floor(turns)) * 0x1p64L);
  }
  return frequency < 0 ? uint64_t{0} - fixed : fixed;
}

/// sin and cos of r in [-pi / 4, pi / 4] by their Taylor series; the first terms left out are below 2^-29.
inline void sine_cosine(simd::F32 r, simd::F32* sine, simd::F32* cosine) {
  const auto square = r * r;
  auto s = simd::fma(square, simd::set1(1.0f / 362880), simd::set1(-1.0f / 5040));
  s = simd::fma(square, s, simd::set1(1.0f / 120));
  s = simd::fma(square, s, simd::set1(-1.0f / 6));
  *sine = simd::fma(r * square, s, r);
  auto c = simd::fma(square, simd::set1(-1.0f / 3628800), simd::set1(1.0f / 40320));
  c = simd::fma(square, c, simd::set1(-1.0f / 720));
  c = simd::fma(square, c, simd::set1(1.0f / 24));
  c = simd::fma(square, c, simd::set1(-0.5f));
  *cosine = simd::fma(square, c, simd::set1(1.0f));
}

/// The table of one token, pairs [first, first + count).
void make_table(const RopeArgs& a, int64_t position, int64_t first, int64_t count, Table& table) {
  const auto* frequencies = a.frequencies.as<float>() + first;
  float angle[kTablePairs], sine[kTablePairs], cosine[kTablePairs];
  uint8_t quadrant[kTablePairs];
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t turn = static_cast<uint64_t>(position) * turns_per_position(frequencies[i]);
    const uint64_t quarter = (turn + (uint64_t{1} << 61)) >> 62;
    quadrant[i] = static_cast<uint8_t>(quarter & 3);
    constexpr float kRadians = 6.283185307179586f * 0x1p-64f;
    angle[i] = static_cast<float>(static_cast<int64_t>(turn - (quarter << 62))) * kRadians;
  }
  simd::for_each(count, [&](int64_t i, int live) {
    simd::F32 s, c;
    sine_cosine(simd::load(angle + i, live), &s, &c);
    simd::store(sine + i, s, live);
    simd::store(cosine + i, c, live);
  });
  for (int64_t i = 0; i < count; ++i) {
    const bool odd = (quadrant[i] & 1) != 0;
    float c = odd ? sine[i] : cosine[i], s = odd ? cosine[i] : sine[i];
    if (quadrant[i] == 1 || quadrant[i] == 2) c = -c;
    if (quadrant[i] >= 2) s = -s;
    c *= a.magnitude, s *= a.magnitude;
    if (a.interleaved) {
      table.cos[2 * i] = table.cos[2 * i + 1] = c;
      table.sin[2 * i] = -s, table.sin[2 * i + 1] = s;
    } else {
      table.cos[i] = c, table.sin[i] = s;
    }
  }
}

template <class T>
void rotate_halves(const Table& table, T* x, T* y, int64_t count) {
  simd::for_each(count, [&](int64_t i, int live) {
    const auto c = simd::load(table.cos + i, live), s = simd::load(table.sin + i, live);
    const auto a = simd::load(x + i, live), b = simd::load(y + i, live);
    simd::store(x + i, simd::fma(a, c, simd::zero() - b * s), live);
    simd::store(y + i, simd::fma(b, c, a * s), live);
  });
}

template <class T>
void rotate_neighbours(const Table& table, T* x, int64_t count) {
  simd::for_each(2 * count, [&](int64_t i, int live) {
    const auto v = simd::load(x + i, live);
    const auto turned = simd::swap_pairs(v) * simd::load(table.sin + i, live);
    simd::store(x + i, simd::fma(v, simd::load(table.cos + i, live), turned), live);
  });
}

template <class T>
void rotate_token(const RopeArgs& a, int64_t t) {
  const int64_t pairs = a.frequencies.dim(0);
  Table table;
  for (int64_t first = 0; first < pairs; first += kTablePairs) {
    const int64_t count = std::min(kTablePairs, pairs - first);
    make_table(a, a.positions.i64(t), first, count, table);
    for (int64_t h = 0; h < a.x.dim(1); ++h) {
      T* x = a.x.row<T>(t) + h * a.x.stride(1);  // [head_dim]
      if (a.interleaved)
        rotate_neighbours(table, x + 2 * first, count);
      else
        rotate_halves(table, x + first, x + pairs + first, count);
    }
  }
}

Decline dense_heads(const RopeArgs& a) {
  if (!a.x.rows_are_dense()) return decline("x has strides along head_dim: copy x");
  if (!a.frequencies.is_dense()) return decline("frequencies has strides: copy it");
  return {};
}

Status run(Stream& stream, const RopeArgs& a) {
  for (int64_t i = 0; i < a.frequencies.dim(0); ++i)
    if (const float f = a.frequencies.as<float>()[i]; !std::isfinite(f))
      return invalid_argument("rope: frequencies[", i, "] is ", f, ", needs a finite number");
  return with_dtype<float, bf16>(a.x, [&]<class T>(T) {
    const double bytes =
        static_cast<double>(a.x.dim(1) + 4) * static_cast<double>(a.x.dim(2)) * 2 * sizeof(T);
    return as_cpu(stream).for_each(a.x.dim(0), bytes, [&](int64_t t) { rotate_token<T>(a, t); });
  });
}

}  // namespace

void rope_cpu(Kernels<RopeArgs>& kernels) {
  kernels.add("rope_by_token", dense_heads, run);
}

}  // namespace ridge::RIDGE_ISA
