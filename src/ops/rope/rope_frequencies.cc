#include "ops/rope/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ridge {

namespace {

constexpr double kTwoPi = 6.283185307179586477;

std::vector<double> unscaled(const RopeConfig& c, double base) {
  std::vector<double> out;
  for (int64_t i = 0; i < c.rotary_dim / 2; ++i)
    out.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(c.rotary_dim)));
  return out;
}

Status check_positive(const char* name, double value, const RopeConfig& c) {
  if (value > 0 && std::isfinite(value)) return {};
  return invalid_argument("rope: ", name, " is ", value, ", ", c.type, " needs a finite number above 0");
}

Result<RopeTable> round_all(const std::vector<double>& frequencies, double magnitude) {
  RopeTable table;
  for (const double f : frequencies) table.frequencies.push_back(static_cast<float>(f));
  table.magnitude = static_cast<float>(magnitude);
  return table;
}

Result<RopeTable> linear(const RopeConfig& c) {
  RIDGE_TRY(check_positive("factor", c.factor, c));
  auto f = unscaled(c, c.base);
  for (double& x : f) x /= c.factor;
  return round_all(f, 1);
}

Result<RopeTable> dynamic(const RopeConfig& c) {
  if (!(c.factor >= 1)) return invalid_argument("rope: factor is ", c.factor, ", dynamic needs at least 1");
  RIDGE_TRY(check_positive("max_position_embeddings", static_cast<double>(c.context), c));
  if (c.rotary_dim <= 2)
    return invalid_argument("rope: rotary_dim is ", c.rotary_dim, ", dynamic needs at least 4");
  const double n = static_cast<double>(std::max(c.sequence, c.context)),
               d = static_cast<double>(c.rotary_dim);
  const double grown = c.factor * n / static_cast<double>(c.context) - (c.factor - 1);
  return round_all(unscaled(c, c.base * std::pow(grown, d / (d - 2))), 1);
}

Result<RopeTable> llama3(const RopeConfig& c) {
  RIDGE_TRY(check_positive("factor", c.factor, c));
  RIDGE_TRY(check_positive("original_max_position_embeddings", static_cast<double>(c.original), c));
  RIDGE_TRY(check_positive("low_freq_factor", c.low_frequency_factor, c));
  if (!(c.high_frequency_factor > c.low_frequency_factor))
    return invalid_argument("rope: high_freq_factor is ", c.high_frequency_factor,
                            ", llama3 needs it above low_freq_factor, ", c.low_frequency_factor);
  auto f = unscaled(c, c.base);
  for (double& x : f) {
    // Turns in the original context: 0 at low_frequency_factor, 1 at high_frequency_factor.
    const double turns = static_cast<double>(c.original) * x / kTwoPi;
    const double keep = std::clamp(
        (turns - c.low_frequency_factor) / (c.high_frequency_factor - c.low_frequency_factor), 0.0, 1.0);
    x = (1 - keep) * x / c.factor + keep * x;
  }
  return round_all(f, 1);
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

Result<RopeTable> yarn(const RopeConfig& c) {
  RIDGE_TRY(check_positive("factor", c.factor, c));
  RIDGE_TRY(check_positive("original_max_position_embeddings", static_cast<double>(c.original), c));
  RIDGE_TRY(check_positive("beta_fast", c.beta_fast, c));
  RIDGE_TRY(check_positive("beta_slow", c.beta_slow, c));
  // The pair that turns so many times in the original context.
  const auto pair_of = [&](double turns) {
    return static_cast<double>(c.rotary_dim) * std::log(static_cast<double>(c.original) / (turns * kTwoPi)) /
           (2 * std::log(c.base));
  };
  double low = pair_of(c.beta_fast), high = pair_of(c.beta_slow);
  if (c.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(c.rotary_dim - 1));
  if (low == high) high += 0.001;
  auto f = unscaled(c, c.base);
  for (size_t i = 0; i < f.size(); ++i) {
    const double scaled = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f[i] = f[i] / c.factor * scaled + f[i] * (1 - scaled);
  }
  const double by_mscale =
      c.mscale != 0 && c.mscale_all_dim != 0
          ? yarn_magnitude(c.factor, c.mscale) / yarn_magnitude(c.factor, c.mscale_all_dim)
          : yarn_magnitude(c.factor, 1);
  return round_all(f, c.attention_factor.value_or(by_mscale));
}

Result<RopeTable> longrope(const RopeConfig& c) {
  RIDGE_TRY(check_positive("original_max_position_embeddings", static_cast<double>(c.original), c));
  const bool is_long = c.sequence > c.original;
  const std::vector<double>& divisors = is_long ? c.long_factor : c.short_factor;
  auto f = unscaled(c, c.base);
  if (divisors.size() != f.size())
    return invalid_argument("rope: ", is_long ? "long_factor" : "short_factor", " has ", divisors.size(),
                            " numbers, rotary_dim ", c.rotary_dim, " needs ", f.size());
  for (size_t i = 0; i < f.size(); ++i) {
    RIDGE_TRY(
        check_positive(is_long ? "a number of long_factor" : "a number of short_factor", divisors[i], c));
    f[i] /= divisors[i];
  }
  const double stretch =
      c.context > 0 ? static_cast<double>(c.context) / static_cast<double>(c.original) : c.factor;
  const double magnitude = stretch <= 1 || c.original == 1
                               ? 1
                               : std::sqrt(1 + std::log(stretch) / std::log(static_cast<double>(c.original)));
  return round_all(f, c.attention_factor.value_or(magnitude));
}

}  // namespace

uint64_t RopeTable::hash() const {
  uint64_t h = 0xcbf29ce484222325u;
  const auto add = [&](float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    for (int i = 0; i < 4; ++i) h = (h ^ (bits >> 8 * i & 255)) * 0x100000001b3u;
  };
  for (const float f : frequencies) add(f);
  add(magnitude);
  h ^= frequencies.size();
  h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

Result<RopeTable> rope_frequencies(const RopeConfig& config) {
  if (config.rotary_dim <= 0 || config.rotary_dim % 2 != 0)
    return invalid_argument("rope: rotary_dim is ", config.rotary_dim, ", needs an even number above 0");
  if (!(config.base > 1) || !std::isfinite(config.base))
    return invalid_argument("rope: rope_theta is ", config.base, ", needs a finite number above 1");
  if (config.attention_factor && !(*config.attention_factor > 0))
    return invalid_argument("rope: attention_factor is ", *config.attention_factor,
                            ", needs a number above 0");
  const std::string& type = config.type;
  if (type.empty() || type == "none" || type == "default") return round_all(unscaled(config, config.base), 1);
  if (type == "linear") return linear(config);
  if (type == "dynamic") return dynamic(config);
  if (type == "llama3") return llama3(config);
  if (type == "yarn") return yarn(config);
  if (type == "longrope" || type == "su") return longrope(config);
  return invalid_argument("rope: type ", printable(type),
                          " is unknown; known are default, linear, dynamic, llama3, yarn, longrope");
}

}  // namespace ridge
