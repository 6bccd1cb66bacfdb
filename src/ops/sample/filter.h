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

struct Row {
  const float* x;  // [columns] adjusted logits
  int64_t columns;
  Weight weight;
  float scale;        // temperature
  Partial* partials;  // a block each; largest is filled
  uint64_t* keys;     // [columns] scratch
};

// Levels that are fine enough for one pass over ambiguous tokens to cost less than another pass over the row.
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
inline Measured measure(const Crew& crew, const Row& row, const Cut& cut, const float (&levels)[kLevels]) {
  crew.for_each_block(row.columns, [&](int64_t b, int64_t first, int64_t n) {
    Partial& p = row.partials[b];
    std::fill_n(p.mass, kLevels, 0.0), std::fill_n(p.count, kLevels, 0);
    if (p.largest < levels[kLevels - 1]) return;
    for_each_part(cut, first, n, [&](int64_t from, int64_t size, float least) {
      float floors[kLevels];
      for (int j = 0; j < kLevels; ++j) floors[j] = std::max(levels[j], least);
      measure_levels(row.x + from, size, row.weight, floors, &p);
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
  for (int64_t first = 0; first < row.columns; first += kBlock) {
    if (row.partials[first / kBlock].largest < bracket.low) continue;
    const int64_t n = std::min(kBlock, row.columns - first);
    for_each_part(cut, first, n, [&](int64_t from, int64_t size, float least) {
      const float low = std::max(least, bracket.low);
      simd::for_each(size, [&](int64_t i, int live) {
        const float* x = row.x + from + i;
        if (simd::max_of(load_live(x, live)) < low) return;
        for (int j = 0; j < live; ++j)
          if (x[j] >= low && (bracket.count_high == 0 || x[j] < bracket.high))
            row.keys[found++] = key_of(x[j], from + i + j);
      });
    });
  }
  return found;
}

/// Where the prefix ends among gathered keys, of which it takes at least one.
inline Cut end_of_prefix(const Row& row, int64_t n, const Wanted& wanted, const Bracket& bracket) {
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
  return {value_of(row.keys[first]), id_of(row.keys[first])};
}

/// The cut that leaves the wanted prefix of what `cut` keeps. top_p is a share of the mass that `cut` keeps.
inline Cut shorten(const Crew& crew, const Row& row, const Cut& cut, Wanted wanted, double top_p) {
  const float unit = wanted.by_count ? 1.0f : row.scale;
  float levels[kLevels];
  for (int j = 0; j < kLevels - 1; ++j)
    levels[j] = std::max(row.weight.largest - unit * static_cast<float>(j < 4 ? j + 1 : 2 * j), cut.at);
  levels[kLevels - 1] = cut.at;
  Measured measured = measure(crew, row, cut, levels);
  if (wanted.by_count && measured.count[kLevels - 1] <= wanted.count) return cut;
  if (!wanted.by_count) wanted.mass = top_p * measured.mass[kLevels - 1];
  Bracket bracket{cut.at, next_up(row.weight.largest), measured.count[kLevels - 1], 0, 0};
  tighten(measured, levels, wanted, &bracket);
  for (int pass = 0; pass < 4 && bracket.count_low - bracket.count_high > kFewKeys; ++pass) {
    divide(bracket, unit, levels);
    measured = measure(crew, row, cut, levels);
    tighten(measured, levels, wanted, &bracket);
  }
  const int64_t n = gather(row, cut, bracket);
  return n == 0 ? cut : end_of_prefix(row, n, wanted, bracket);
}

}  // namespace ridge::RIDGE_ISA::sampling
