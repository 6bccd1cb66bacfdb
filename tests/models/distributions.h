#pragma once
// Rows of logits as distributions, in double precision.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ridge {

inline double log_sum_exp(const float* logits, int64_t n) {
  double top = logits[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) top = std::max<double>(top, logits[i]);
  for (int64_t i = 0; i < n; ++i) sum += std::exp(logits[i] - top);
  return top + std::log(sum);
}

/// KL(p || q) in nats of the distributions that two rows of logits stand for, in double precision.
inline double kl_divergence(const float* p, const float* q, int64_t n) {
  const double lp = log_sum_exp(p, n), lq = log_sum_exp(q, n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double log_p = p[i] - lp;
    sum += std::exp(log_p) * (log_p - (q[i] - lq));
  }
  return sum;
}

}  // namespace ridge
