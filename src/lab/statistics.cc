#include "lab/statistics.h"

#include <algorithm>
#include <cmath>

namespace ridge {

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  const size_t half = v.size() / 2;
  return v.size() % 2 == 1 ? v[half] : (v[half - 1] + v[half]) / 2;
}

Runs runs_of(const std::vector<double>& values) {
  Runs r;
  if (values.empty()) return r;
  r.first = values.front();
  const std::vector<double> others(values.begin() + 1, values.end());
  r.n = static_cast<int64_t>(others.size()), r.value = median(others);
  if (r.n > 0) {
    const auto [least, most] = std::minmax_element(others.begin(), others.end());
    r.least = *least, r.most = *most;
  }
  return r;
}

double percentile(std::vector<double> v, double share) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  // The product of 0.99 and 1,000 must not become 991 by rounding.
  const double rank = std::ceil(share * static_cast<double>(v.size()) - 1e-9);
  return v[static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(v.size()))) - 1];
}

int64_t samples_for_percentile(double share) {
  if (!(share > 0 && share < 1)) return 1;
  auto n = static_cast<int64_t>(std::log(0.05) / std::log(share));
  while (std::pow(share, static_cast<double>(n)) >= 0.05) ++n;
  return n;
}

double binomial_half_below(int64_t n, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < std::min(k, n + 1); ++i)
    sum += std::exp(std::lgamma(double(n + 1)) - std::lgamma(double(i + 1)) - std::lgamma(double(n - i + 1)) -
                    static_cast<double>(n) * std::log(2.0));
  return sum;
}

bool median_interval(std::vector<double> v, double confidence, Interval* out, double* coverage) {
  const auto n = static_cast<int64_t>(v.size());
  int64_t k = 0;
  while (2 * (k + 1) <= n && 1 - 2 * binomial_half_below(n, k + 1) >= confidence) ++k;
  if (k == 0) return false;
  std::sort(v.begin(), v.end());
  *out = {v[static_cast<size_t>(k - 1)], median(v), v[static_cast<size_t>(n - k)]};
  if (coverage != nullptr) *coverage = 1 - 2 * binomial_half_below(n, k);
  return true;
}

double divided_confidence(double confidence, int tries) {
  return 1 - (1 - confidence) / std::max(1, tries);
}

}  // namespace ridge
