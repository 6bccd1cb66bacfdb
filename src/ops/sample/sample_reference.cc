// As the definition reads: every row sorted whole, in double precision.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/sample/sample.h"

namespace ridge {

namespace {

using Logits = std::vector<double>;

int32_t parameter_status(const SampleArgs& a, int64_t r) {
  const double temperature = a.temperature.f64(r), top_p = a.top_p.f64(r), min_p = a.min_p.f64(r);
  bool good = temperature >= 0 && std::isfinite(temperature) && a.top_k.i64(r) >= 0;
  good = good && top_p >= 0 && top_p <= 1 && min_p >= 0 && min_p <= 1;
  if (a.penalties)
    for (int64_t i = 0; i < 3; ++i) good = good && std::isfinite(a.penalties.f64(r, i));
  if (a.penalties) good = good && a.penalties.f64(r, 0) >= 0;
  return good ? kSampleOk : kSampleBadParameter;
}

/// The entries before the first -1; false when one is not an id.
bool ids_of(const Tensor& t, int64_t r, int64_t vocab, std::vector<int64_t>* ids) {
  for (int64_t i = 0; t && i < t.dim(1) && t.i64(r, i) != -1; ++i) {
    if (t.i64(r, i) < 0 || t.i64(r, i) >= vocab) return false;
    ids->push_back(t.i64(r, i));
  }
  return true;
}

double to_f32(double v) {
  return static_cast<double>(static_cast<float>(v));
}

/// Penalties and biases on `z`.
int32_t adjust(const SampleArgs& a, int64_t r, Logits& z) {
  std::vector<int64_t> history, biased;
  const auto vocab = static_cast<int64_t>(z.size());
  if (!ids_of(a.history, r, vocab, &history) || !ids_of(a.bias_ids, r, vocab, &biased)) return kSampleBadId;
  if (a.penalties) {
    std::vector<int64_t> occurrences(z.size());
    for (const int64_t id : history) ++occurrences[static_cast<size_t>(id)];
    const double repetition = a.penalties.f64(r, 0) == 0 ? 1 : a.penalties.f64(r, 0);
    for (size_t i = 0; i < z.size(); ++i) {
      if (occurrences[i] == 0) continue;
      const double repeated = z[i] > 0 ? z[i] / repetition : z[i] * repetition;
      z[i] = to_f32(repeated - a.penalties.f64(r, 1) -
                    a.penalties.f64(r, 2) * static_cast<double>(occurrences[i]));
    }
  }
  for (size_t i = 0; i < biased.size(); ++i) {
    double& v = z[static_cast<size_t>(biased[i])];
    v = to_f32(v + a.bias_values.f64(r, static_cast<int64_t>(i)));
  }
  return kSampleOk;
}

/// e^((v - largest) / temperature), for infinities too.
double weight_of(double v, double largest, double temperature) {
  return v == largest ? 1 : std::isinf(largest) ? 0 : std::exp((v - largest) / temperature);
}

int64_t choose(const SampleArgs& a, int64_t r, const Logits& z) {
  std::vector<int64_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int64_t i) { return z[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return at(i) > at(j); });
  const double temperature = a.temperature.f64(r), largest = at(order[0]);
  if (temperature == 0) return order[0];
  const auto weight = [&](int64_t i) { return weight_of(at(i), largest, temperature); };
  const auto sum = [&] {
    double s = 0;
    for (const int64_t i : order) s += weight(i);
    return s;
  };
  if (const auto k = static_cast<size_t>(a.top_k.i64(r)); k > 0 && k < order.size()) order.resize(k);
  if (a.top_p.f64(r) < 1) {
    const double wanted = a.top_p.f64(r) * sum() * (1 - 0x1p-20);
    size_t kept = 0;
    double mass = 0;
    while (kept == 0 || (kept < order.size() && mass < wanted)) mass += weight(order[kept++]);
    order.resize(kept);
  }
  const double least = a.min_p.f64(r) * (1 - 0x1p-20);
  order.erase(std::remove_if(order.begin(), order.end(), [&](int64_t i) { return weight(i) < least; }),
              order.end());
  std::sort(order.begin(), order.end());
  const auto key = static_cast<uint64_t>(a.seed.i64(r)), counter = static_cast<uint64_t>(a.position.i64(r));
  const Philox4 words = philox(key, counter);
  const uint64_t bits = uint64_t{words[0]} << 32 | words[1];
  const double target = static_cast<double>(bits >> 11) * 0x1p-53 * sum();
  double running = 0;
  for (const int64_t i : order)
    if ((running += weight(i)) > target) return i;
  return order.back();
}

int32_t sample_row(const SampleArgs& a, int64_t r, int64_t* id, double* logprob) {
  if (const int32_t status = parameter_status(a, r); status != kSampleOk) return status;
  Logits raw(static_cast<size_t>(a.vocab == 0 ? a.logits.dim(1) : a.vocab));
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = a.logits.f64(r, static_cast<int64_t>(i));
  Logits z = raw;
  if (const int32_t status = adjust(a, r, z); status != kSampleOk) return status;
  const auto is_nan = [](double v) { return std::isnan(v); };
  if (std::any_of(raw.begin(), raw.end(), is_nan) || std::any_of(z.begin(), z.end(), is_nan))
    return kSampleNan;
  if (std::all_of(z.begin(), z.end(), [](double v) { return v == -HUGE_VAL; })) return kSampleNoCandidate;
  *id = choose(a, r, z);
  const double largest = *std::max_element(raw.begin(), raw.end()), chosen = raw[static_cast<size_t>(*id)];
  double sum = 0;
  for (const double v : raw) sum += weight_of(v, largest, 1);
  *logprob = chosen == -HUGE_VAL ? chosen : (chosen == largest ? 0 : chosen - largest) - std::log(sum);
  return kSampleOk;
}

}  // namespace

void sample_reference(const SampleArgs& a) {
  for (int64_t r = 0; r < a.logits.dim(0); ++r) {
    int64_t id = -1;
    double logprob = std::nan("");
    const int32_t status = sample_row(a, r, &id, &logprob);
    a.ids.set(static_cast<double>(id), r);
    a.status.set(status, r);
    a.logprob.set(logprob, r);
  }
}

}  // namespace ridge
