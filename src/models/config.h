#pragma once
// What the decoder-only architectures have in common, read from a model file and checked before anything is
// built on it.

#include <string>
#include <vector>

#include "formats/gguf.h"
#include "ops/rope/rope_frequencies.h"

namespace ridge {

struct DecoderConfig {
  std::string architecture;  // "llama"
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, inner = 0, vocab = 0, context = 0;
  float epsilon = 0;
  RopeConfig rope;
};

/// Reads the common keys under `<architecture>.`; kCorrupt naming key, value and limit for what cannot be a
/// model: no heads, heads that kv_heads do not divide, an empty vocabulary, more layers than limits.h allows,
/// a tensor of a layer beyond block_count …; kDeclined for a key that changes the arithmetic in a way that no
/// architecture here computes.
Result<DecoderConfig> read_decoder_config(const GgufFile& file);

/// The rotary table that a file asks for. Errors: kCorrupt naming file and key, with what rope_frequencies
/// says of type and numbers.
Result<RopeTable> rope_table(const GgufFile& file, const RopeConfig& config);

}  // namespace ridge
