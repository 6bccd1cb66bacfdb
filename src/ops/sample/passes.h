#pragma once
// Vectorized passes over one row of logits, by blocks of a fixed size: the partial results of blocks are
// combined in their order, so a row's answer is the same on any number of threads. Included by *_cpu.cc
// alone.

#include <bit>
#include <limits>

#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"

namespace ridge::RIDGE_ISA::sampling {

// 8 KiB: a block's second reading comes from L1. Also 128 additions a lane, which bounds the error of a sum.
inline constexpr int64_t kBlock = 2048;
inline constexpr int kLevels = 8;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kLowest = std::numeric_limits<float>::lowest();
inline constexpr double kLog2E = 1.4426950408889634;

inline simd::F32 load_live(const float* p, int live) {
  if (live == simd::kLanes) return simd::load(p);
  return simd::keep_first(simd::load(p, live), live, simd::set1(-kInfinity));
}

inline float next_up(float x) {
  return std::nextafter(x, kInfinity);
}

/// 2^y for y <= 0, within 1.3 * 2^-24 of it, 1 at 0; 0 below -126.5, NaN stays NaN. Half of the work of
/// simd::exp, which a row's cost is made of. Method: y = n + f, |f| <= 1/2, degree-6 minimax polynomial of
/// our own fit with constant 1.
inline simd::F32 exp2_below(simd::F32 y) {
  simd::F32 f;
  const simd::F32 power = simd::split_pow2(simd::max(simd::set1(-127.0f), y), &f);
  simd::F32 p = simd::set1(1.54697322e-4f);
  p = simd::fma(p, f, simd::set1(1.34100008e-3f));
  p = simd::fma(p, f, simd::set1(9.61803086e-3f));
  p = simd::fma(p, f, simd::set1(5.55029735e-2f));
  p = simd::fma(p, f, simd::set1(2.40226507e-1f));
  p = simd::fma(p, f, simd::set1(6.93147242e-1f));
  return simd::fma(p, f, simd::set1(1.0f)) * power;
}

/// e^((x - largest) / temperature), 0 for -inf; with an infinite largest 1 for it and 0 for all others.
struct Weight {
  float largest = 0, rate = 1;  // rate: log2(e) / temperature, finite
  simd::F32 operator()(simd::F32 x) const {
    if (largest == kInfinity) return simd::zero_where_less(x, simd::set1(largest), simd::set1(1.0f));
    return exp2_below((x - simd::set1(largest)) * simd::set1(rate));
  }
};

/// What one block contributes. Every pass uses the members that it needs.
struct Partial {
  float lanes[simd::kLanes];  // the largest of every 16th logit
  float largest;              // of all; unreliable when nan
  bool nan;
  int64_t infinite;      // logits that are +inf
  double sum;            // of e^(x - base()), or of weights
  double tempered;       // of e^((x - base()) / temperature)
  double mass[kLevels];  // sum of weights at or above each level
  int64_t count[kLevels];

  double base() const { return std::isinf(largest) ? 0 : static_cast<double>(largest); }
  /// `s`, a sum of e^((x - base) / temperature), relative to `to` instead. A block of -inf alone has sum 0,
  /// and a base that means nothing.
  double from(double s, double to, double temperature) const {
    return s == 0 ? 0 : s * std::exp((base() - to) / temperature);
  }
};

inline void block_largest(const float* x, int64_t n, Partial* out) {
  simd::F32 largest = simd::set1(-kInfinity);
  simd::for_each(n, [&](int64_t i, int live) { largest = simd::max(largest, load_live(x + i, live)); });
  simd::store(out->lanes, largest);
  out->largest = simd::max_of(largest);
}

/// Largest, sum, tempered sum at `rate` (unless 0) and what is not finite. A NaN may hide from max, not from
/// the sum.
inline void block_stats(const float* x, int64_t n, float rate, Partial* out) {
  block_largest(x, n, out);
  out->infinite = 0, out->nan = false, out->sum = out->tempered = 0;
  if (out->largest == kInfinity || std::isnan(out->largest)) {
    for (int64_t i = 0; i < n; ++i) out->nan |= std::isnan(x[i]), out->infinite += x[i] == kInfinity;
    return;
  }
  const simd::F32 base = simd::set1(static_cast<float>(out->base()));
  const simd::F32 natural = simd::set1(static_cast<float>(kLog2E)), tempered_rate = simd::set1(rate);
  simd::F32 sum = simd::zero(), tempered = simd::zero();
  const auto add = [&]<bool kTempered>(std::bool_constant<kTempered>) {
    simd::for_each(n, [&](int64_t i, int live) {
      const simd::F32 below = load_live(x + i, live) - base;
      sum = sum + exp2_below(below * natural);
      if constexpr (kTempered) tempered = tempered + exp2_below(below * tempered_rate);
    });
  };
  if (rate != 0)
    add(std::true_type{});
  else
    add(std::false_type{});
  out->sum = static_cast<double>(simd::sum(sum)), out->tempered = static_cast<double>(simd::sum(tempered));
  out->nan = std::isnan(out->sum);
}

/// Sum of the weights of x >= floor.
inline double weight_sum(const float* x, int64_t n, const Weight& weight, float floor) {
  simd::F32 sum = simd::zero();
  const simd::F32 least = simd::set1(floor);
  if (floor <= kLowest)  // -inf has no weight anyway
    simd::for_each(n, [&](int64_t i, int live) { sum = sum + weight(load_live(x + i, live)); });
  else
    simd::for_each(n, [&](int64_t i, int live) {
      const simd::F32 v = load_live(x + i, live);
      sum = sum + simd::zero_where_less(v, least, weight(v));
    });
  return static_cast<double>(simd::sum(sum));
}

/// Adds what is at or above floors[j] to out->count[j] and, with kMass, its weights to out->mass[j].
template <bool kMass>
void measure_levels(const float* x, int64_t n, const Weight& weight, const float (&floors)[kLevels],
                    Partial* out) {
  simd::F32 mass[kLevels], count[kLevels];
  for (int j = 0; j < kLevels; ++j) mass[j] = count[j] = simd::zero();
  const simd::F32 one = simd::set1(1.0f);
  simd::for_each(n, [&](int64_t i, int live) {
    const simd::F32 v = load_live(x + i, live);
    for (int j = 0; j < kLevels; ++j)
      count[j] = count[j] + simd::zero_where_less(v, simd::set1(floors[j]), one);
    if constexpr (kMass) {
      const simd::F32 w = weight(v);
      for (int j = 0; j < kLevels; ++j)
        mass[j] = mass[j] + simd::zero_where_less(v, simd::set1(floors[j]), w);
    }
  });
  for (int j = 0; j < kLevels; ++j) {
    out->count[j] += static_cast<int64_t>(simd::sum(count[j]));
    if constexpr (kMass) out->mass[j] += static_cast<double>(simd::sum(mass[j]));
  }
}

/// Ascending keys are descending values, then ascending ids.
inline uint64_t key_of(float value, int64_t id) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);  // -0 ties with 0
  const uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
  return uint64_t{~ascending} << 32 | static_cast<uint32_t>(id);
}
inline float value_of(uint64_t key) {
  const uint32_t ascending = ~static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>(ascending >> 31 ? ascending & 0x7fffffffu : ~ascending);
}
inline int64_t id_of(uint64_t key) {
  return static_cast<int64_t>(key & 0xffffffffu);
}

/// body(weights, i, live) for the weights of keys [i, i + live), 16 at a time.
template <class Body>
void for_each_weight(const uint64_t* keys, int64_t n, const Weight& weight, const Body& body) {
  simd::for_each(n, [&](int64_t i, int live) {
    float values[simd::kLanes];
    for (int j = 0; j < live; ++j) values[j] = value_of(keys[i + j]);
    body(weight(load_live(values, live)), i, live);
  });
}
inline double weight_sum(const uint64_t* keys, int64_t n, const Weight& weight) {
  double sum = 0;
  for_each_weight(keys, n, weight,
                  [&](simd::F32 weights, int64_t, int) { sum += static_cast<double>(simd::sum(weights)); });
  return sum;
}

/// Who works on the blocks of one row: a stream's team, or the calling thread alone.
class Crew {
 public:
  explicit Crew(CpuStream* stream) : stream_(stream) {}
  template <class Body>
  void for_each_block(int64_t columns, const Body& body) const {
    const int64_t blocks = (columns + kBlock - 1) / kBlock;
    const auto one = [&](int64_t b) { body(b, b * kBlock, std::min(kBlock, columns - b * kBlock)); };
    if (stream_ == nullptr)
      for (int64_t b = 0; b < blocks; ++b) one(b);
    else
      // Exponentials weigh as much as four times the bytes that are read.
      (void)stream_->for_each(blocks, 4.0 * kBlock * sizeof(float), one);
  }

 private:
  CpuStream* stream_;
};

}  // namespace ridge::RIDGE_ISA::sampling
