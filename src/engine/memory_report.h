#pragma once
// What was planned before loading, beside what is held now, item by item.

#include "engine/session.h"

namespace ridge {

struct MemoryItem {
  std::string what;
  int64_t planned = 0, held = 0;  // bytes; planned 0: not planned, found out while running
};
/// Room behind the last tokens, had pages so many tokens.
struct TailWaste {
  int64_t page_size = 0, tokens = 0;
};

struct MemoryReport {
  std::vector<MemoryItem> items;  // of the device's pool: weights, KV pages, step plans, the stream's own
  std::vector<MemoryItem> apart;  // outside of it: recorded steps; staging, which is the host's
  int64_t held = 0;               // the sum of `items`
  int64_t device = -1;            // what the device itself says is in use; -1: it does not say
  // Of the KV pages, at the fullest moment so far.
  int64_t page_bytes = 0, page_size = 0, pages = 0, pages_used = 0;
  int64_t tail_tokens = 0;       // room after the last tokens
  std::vector<TailWaste> tails;  // by page size, the one in use among them
};

/// Errors: those of plan_memory.
Result<MemoryReport> memory_report(const Model& model, const InferenceEngine& engine, const Device& device);
Result<MemoryReport> memory_report(const Session& session);
/// A line an item: "weights, quantized: 93.8 MiB planned, 94.0 MiB held".
std::string memory_text(const MemoryReport& report);

}  // namespace ridge
