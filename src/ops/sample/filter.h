#pragma once
// Which tokens of a row stay: thresholds found by counting what lies at or above a few levels, never by
// sorting. Included by *_cpu.cc alone.

#include "ops/sample/passes.h"

namespace ridge::RIDGE_ISA::sampling {

/// Kept: logits above `at`, and those equal to it with ids up to `last`.
struct Cut {
  float at;
  int64_t last;
};

/// What the filters so far keep.
struct Kept {
  Cut cut;
  int64_t listed = -1;  // row.keys begins with exactly the kept tokens, in no order; -1: it does not
};

struct Row {
  const float* x;  // [columns] adjusted logits
  int64_t columns;
  Weight weight;
  float scale;        // temperature
  bool has_sums;      // partials hold the tempered sums of these very logits
  Partial* partials;  // a block each; largest is filled
  uint64_t* keys;     // [columns] scratch
};

// So few keys are selected among faster than another pass over the row narrows them down.
inline constexpr int64_t kFewKeys = 4096;

struct Measured {
  double mass[kLevels];
  int64_t count[kLevels];
};

/// The part of a block up to cut.last keeps its ties, the part beyond does not: body(first, n, least kept).
template <class Body>
void for_each_part(const Cut& cut, int64_t first, int64_t n, const Body& body) {
  const int64_t with_ties = std::clamp<int64_t>(cut.last + 1 - first, 0, n);
  if (with_ties > 0) body(first, with_ties, cut.at);
  if (with_ties < n) body(first + with_ties, n - with_ties, next_up(cut.at));
}

/// Mass and number of the kept tokens at or above each level (descending).
template <bool kMass>
Measured measure(const Crew& crew, const Row& row, const Cut& cut, const float (&levels)[kLevels]) {
  crew.for_each_block(row.columns, [&](int64_t b, int64_t first, int64_t n) {
    Partial& p = row.partials[b];
    std::fill_n(p.mass, kLevels, 0.0), std::fill_n(p.count, kLevels, 0);
    if (p.largest < levels[kLevels - 1]) return;
    for_each_part(cut, first, n, [&](int64_t from, int64_t size, float least) {
      float floors[kLevels];
      for (int j = 0; j < kLevels; ++j) floors[j] = std::max(levels[j], least);
      measure_levels<kMass>(row.x + from, size, row.weight, floors, &p);
    });
  });
  Measured total{};
  for (int64_t b = 0; b * kBlock < row.columns; ++b)
    for (int j = 0; j < kLevels; ++j) {
      total.mass[j] += row.partials[b].mass[j];
      total.count[j] += row.partials[b].count[j];
    }
  return total;
}

/// A prefix of the kept tokens in descending order: the first `count` of them, or the fewest with `mass`.
struct Wanted {
  bool by_count;
  int64_t count;
  double mass;  // set from top_p once the whole mass is known
  bool reached(double m, int64_t c) const { return by_count ? c >= count : m >= mass; }
};

/// Tokens in [low, high) are ambiguous: those above are in the prefix but do not fill it, with these they do.
struct Bracket {
  float low, high;
  int64_t count_low, count_high;
  double mass_high;
};

inline void tighten(const Measured& m, const float (&levels)[kLevels], const Wanted& wanted, Bracket* b) {
  int j = 0;
  while (j < kLevels - 1 && !wanted.reached(m.mass[j], m.count[j])) ++j;
  b->low = levels[j], b->count_low = m.count[j];
  if (j == 0 || m.count[j - 1] == 0) return;
  b->high = levels[j - 1], b->count_high = m.count[j - 1], b->mass_high = m.mass[j - 1];
}

/// Levels between the ends of a bracket, the last its low end.
inline void divide(const Bracket& b, float scale, float (&levels)[kLevels]) {
  const bool wide = !(b.high - b.low < 4096 * scale);
  for (int j = 0; j < kLevels - 1; ++j) {
    const float step = wide ? scale * static_cast<float>(4 << 2 * j)
                            : (b.high - b.low) * (static_cast<float>(j + 1) / kLevels);
    levels[j] = std::max(b.high - step, b.low);
  }
  levels[kLevels - 1] = b.low;
}

/// The kept tokens of a bracket, in ascending order of id; their number.
inline int64_t gather(const Row& row, const Cut& cut, const Bracket& bracket) {
  int64_t found = 0;
  const bool closed = bracket.count_high > 0;
  for (int64_t first = 0; first < row.columns; first += kBlock) {
    if (row.partials[first / kBlock].largest < bracket.low) continue;
    const int64_t n = std::min(kBlock, row.columns - first);
    for_each_part(cut, first, n, [&](int64_t from, int64_t size, float least) {
      const simd::F32 low = simd::set1(std::max(least, bracket.low)), high = simd::set1(bracket.high);
      simd::for_each(size, [&](int64_t i, int live) {
        const float* x = row.x + from + i;
        const simd::F32 v = load_live(x, live);
        uint32_t bits = simd::at_least(v, low);
        if (closed) bits &= ~simd::at_least(v, high);
        for (; bits != 0; bits &= bits - 1) {
          const int j = std::countr_zero(bits);
          row.keys[found++] = key_of(x[j], from + i + j);
        }
      });
    });
  }
  return found;
}

/// Cuts n gathered keys where the prefix ends; it takes at least one of them. Keys up to that one come first.
inline Kept end_of_prefix(const Row& row, int64_t n, const Wanted& wanted, const Bracket& bracket) {
  int64_t first = 0, last = n;
  if (wanted.by_count) {
    first = std::min(n, wanted.count - bracket.count_high) - 1;
    std::nth_element(row.keys, row.keys + first, row.keys + n);
  } else {
    // Halves: the keys before `first` do not fill the prefix, those before `last` do.
    double missing = wanted.mass - bracket.mass_high;
    while (last - first > 1) {
      const int64_t middle = (first + last) / 2;
      std::nth_element(row.keys + first, row.keys + middle, row.keys + last);
      const double mass = weight_sum(row.keys + first, middle - first, row.weight);
      if (mass >= missing)
        last = middle;
      else
        missing -= mass, first = middle;
    }
  }
  const bool whole = bracket.count_high == 0 && first < kFewKeys;
  return {{value_of(row.keys[first]), id_of(row.keys[first])}, whole ? first + 1 : -1};
}

/// A level with at least k tokens and few more: the k-th largest of the blocks' lanes, which are as many
/// tokens. -inf when there are too few lanes for it to be close.
inline float level_for(const Row& row, int64_t k) {
  const int64_t lanes = (row.columns + kBlock - 1) / kBlock * simd::kLanes;
  if (row.columns < kBlock || k > lanes / 2) return -kInfinity;
  auto* largest = reinterpret_cast<float*>(row.keys);
  for (int64_t i = 0; i < lanes; i += simd::kLanes)
    std::copy_n(row.partials[i / simd::kLanes].lanes, simd::kLanes, largest + i);
  std::nth_element(largest, largest + k - 1, largest + lanes, std::greater<float>());
  return largest[k - 1];
}

/// The bracket of a wanted prefix, by measuring at levels that close in on it.
template <bool kMass>
Bracket narrow(const Crew& crew, const Row& row, const Cut& cut, double top_p, Wanted* wanted) {
  const float unit = kMass ? row.scale : 1.0f;
  float levels[kLevels];
  for (int j = 0; j < kLevels - 1; ++j)
    levels[j] = std::max(row.weight.largest - unit * static_cast<float>(j < 4 ? j + 1 : 2 * j), cut.at);
  levels[kLevels - 1] = cut.at;
  Measured measured = measure<kMass>(crew, row, cut, levels);
  if (kMass) wanted->mass = top_p * measured.mass[kLevels - 1];
  Bracket bracket{cut.at, next_up(row.weight.largest), measured.count[kLevels - 1], 0, 0};
  tighten(measured, levels, *wanted, &bracket);
  for (int pass = 0; pass < 4 && bracket.count_low - bracket.count_high > kFewKeys; ++pass) {
    divide(bracket, unit, levels);
    measured = measure<kMass>(crew, row, cut, levels);
    tighten(measured, levels, *wanted, &bracket);
  }
  // Few enough to list all: later filters and the draw then need no pass over the row.
  if (bracket.count_low <= kFewKeys) bracket.count_high = 0, bracket.mass_high = 0;
  return bracket;
}

/// Leaves the k largest.
inline void keep_largest(const Crew& crew, const Row& row, int64_t k, Kept* kept) {
  Wanted wanted{true, k, 0};
  Bracket bracket{level_for(row, k), 0, 0, 0, 0};
  if (bracket.low < kept->cut.at) bracket = narrow<false>(crew, row, kept->cut, 0, &wanted);
  const int64_t n = gather(row, kept->cut, bracket);
  if (n > 0) *kept = end_of_prefix(row, n, wanted, bracket);
}

/// Leaves the shortest prefix with a share of the mass.
inline void keep_mass(const Crew& crew, const Row& row, double share, Kept* kept) {
  Wanted wanted{false, 0, 0};
  Bracket bracket{kept->cut.at, 0, 0, 0, 0};
  int64_t n = kept->listed;
  if (n >= 0) {
    wanted.mass = share * weight_sum(row.keys, n, row.weight);
  } else {
    bracket = narrow<true>(crew, row, kept->cut, share, &wanted);
    n = gather(row, kept->cut, bracket);
  }
  if (n > 0) *kept = end_of_prefix(row, n, wanted, bracket);
}

}  // namespace ridge::RIDGE_ISA::sampling
