#pragma once
// Cost: what a call has to compute and to move, counted on the real ragged batch.

#include <array>
#include <cstdint>

namespace ridge {

/// Which pool of bytes an operand belongs to.
enum class DataClass : uint8_t { kWeights, kKv, kActivations, kScales, kIndices };
inline constexpr int kDataClasses = 5;
const char* data_class_name(DataClass c);  // "weights", "kv", ...

/// Which unit does the arithmetic: a peak of its own each.
enum class Engine : uint8_t { kF32, kBf16, kF16, kInt8, kFp8 };
inline constexpr int kEngines = 5;
const char* engine_name(Engine e);  // "f32", "bf16", ...

struct Cost {
  std::array<int64_t, kEngines> flops{};           // useful: multiply-add = 2, causal pairs only
  std::array<int64_t, kEngines> executed_flops{};  // with padding and masked tiles
  // Useful ones of attention as others count them, by square_pairs(); 0: no attention, or chunks unknown.
  // To be shown beside the others: nothing is judged or predicted by it.
  int64_t square_flops = 0;
  std::array<int64_t, kDataClasses> read_bytes{}, written_bytes{};
  int64_t sent_intra_bytes = 0, sent_inter_bytes = 0;
  int64_t launches = 0;

  int64_t total_flops() const;
  int64_t total_executed() const;
  int64_t total_read() const;
  int64_t total_written() const;
  int64_t total_bytes() const { return total_read() + total_written(); }
  Cost& operator+=(const Cost& other);
  bool operator==(const Cost&) const = default;
};

/// One sequence's part of a batch: `tokens` new queries behind `past` cached keys.
struct QueryChunk {
  int64_t past = 0, tokens = 0;
  bool operator==(const QueryChunk&) const = default;
};

/// Query-key pairs that causality allows to `chunk` new tokens after `past` cached ones, each query seeing at
/// most the last `window` keys, itself included (0: all). Sum over queries of min(past + i + 1, window).
int64_t causal_pairs(int64_t past, int64_t chunk, int64_t window = 0);

/// What a prompt's full square, causality and windows left out as often elsewhere, grows by with `chunk`
/// tokens: (past + chunk)^2 - past^2, so that its chunks add up to it.
int64_t square_pairs(int64_t past, int64_t chunk);

/// Distinct cached tokens that those queries read.
int64_t causal_keys(int64_t past, int64_t chunk, int64_t window = 0);

}  // namespace ridge
