#pragma once
// The frequency table of rotary position embeddings under the scalings that checkpoints name.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace ridge {

/// What a checkpoint's configuration says. Names in comments are those of Hugging Face's config.json.
struct RopeConfig {
  // rope_type, or in older files type: "default" (also "none" or empty), "linear", "dynamic", "llama3",
  // "yarn", "longrope" (also "su").
  std::string type;
  int64_t rotary_dim = 0;  // head_dim, or the part of it that is rotated; even
  double base = 10000;     // rope_theta
  double factor = 1;       // all types but default and longrope
  int64_t context = 0;     // max_position_embeddings; dynamic, longrope
  int64_t original = 0;    // original_max_position_embeddings; llama3, yarn, longrope
  int64_t sequence = 0;    // tokens that will be processed; dynamic, longrope
  double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3: low_freq_factor, high_freq_factor
  double beta_fast = 32, beta_slow = 1;                        // yarn
  bool truncate = true;                                        // yarn: ramp ends at whole pairs
  double mscale = 0, mscale_all_dim = 0;                       // yarn; 0: absent
  std::optional<double> attention_factor;                      // yarn, longrope
  std::vector<double> short_factor, long_factor;               // longrope, [rotary_dim / 2] each
};

struct RopeTable {
  std::vector<float> frequencies;  // [rotary_dim / 2], radians per position
  float magnitude = 1;             // of cos and sin
  /// 64 bits over every frequency's and the magnitude's bits (FNV-1a, then a finalizer): whatever changes
  /// keys changes it, however the configuration spelt it. Not meant against an adversary.
  uint64_t hash() const;
};

/// The table, computed in double and rounded once. Pair i of an unscaled table turns base^(-2 i / rotary_dim)
/// radians a position.
///   linear    every frequency / factor (Chen et al. 2023, "Position interpolation")
///   dynamic   base (factor n / context - factor + 1)^(d / (d - 2)) instead of base once n = sequence exceeds
///   context
///             (NTK-aware scaling, as Hugging Face's modeling_rope_utils defines it)
///   llama3    wavelengths above original / low_frequency_factor / factor, those below original /
///   high_frequency_factor
///             as they are, a linear blend between (Llama 3.1 model card's reference code)
///   yarn      a ramp over pairs from unscaled to / factor; magnitude 0.1 ln factor + 1 (Peng et al. 2023,
///   §3.2, §3.4) longrope  a divisor for each pair, short or long; magnitude sqrt(1 + ln(context / original)
///   / ln original)
///             (Ding et al. 2024, §3)
/// Errors: kInvalidArgument for an unknown type, naming it, and for numbers that the type cannot use.
Result<RopeTable> rope_frequencies(const RopeConfig& config);

}  // namespace ridge
