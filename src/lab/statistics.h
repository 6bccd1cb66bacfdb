#pragma once
// Statistics of small, paired samples, without a distribution assumed.

#include <cstdint>
#include <vector>

namespace ridge {

struct Interval {
  double low = 0, value = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
  bool overlaps(const Interval& o) const { return low <= o.high && o.low <= high; }
};

/// Median of a copy; the mean of the two middle values when their number is even. 0 of none.
double median(std::vector<double> values);

/// Runs of one thing with the first apart: it makes plans, allocates and touches memory for the first time,
/// and says nothing about the others.
struct Runs {
  double first = 0;
  double value = 0, least = 0, most = 0;  // median and range of the others; 0 of none
  int64_t n = 0;                          // of the others
};
Runs runs_of(const std::vector<double>& values);

/// Value of rank ceil(share n), 1-based: P99 of 1,000 values is the 990th. 0 of none.
double percentile(std::vector<double> values, double share);

/// Fewest values for which the largest bounds the percentile with confidence 95 %: share^n < 0.05. P99: 299.
int64_t samples_for_percentile(double share);

/// P(X < k) for X binomial(n, 1/2).
double binomial_half_below(int64_t n, int64_t k);

/// An interval of the median by order statistics: [x_k, x_{n+1-k}] with the largest k whose coverage
/// 1 - 2 P(Bin(n, 1/2) < k) is at least `confidence`. False when even [x_1, x_n] covers less: too few values.
/// Source: Conover 1999, "Practical Nonparametric Statistics", §3.2 (the sign test turned round).
bool median_interval(std::vector<double> values, double confidence, Interval* out,
                     double* coverage = nullptr);

/// The error allowed to each of `tries` intervals so that all hold with `confidence` (Bonferroni).
double divided_confidence(double confidence, int tries);

}  // namespace ridge
