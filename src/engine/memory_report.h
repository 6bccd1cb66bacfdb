#pragma once
// What was planned before loading, beside what is held now, item by item.

#include "engine/session.h"

namespace ridge {

struct MemoryItem {
  std::string what;
  int64_t planned = 0, held = 0;  // bytes; planned 0: not planned, found out while running
};

struct MemoryReport {
  std::vector<MemoryItem> items;  // weights, KV pages, step plans, workspaces, staging
  int64_t held = 0;               // their sum on the device: staging is the host's
  int64_t device = -1;            // what the device itself says is in use; -1: it does not say
  // Of the KV pages, at the fullest moment so far.
  int64_t page_bytes = 0, pages = 0, pages_used = 0, tail_tokens = 0;  // tail: room after the last token
};

/// Errors: those of plan_memory.
Result<MemoryReport> memory_report(const Session& session);
/// A line an item: "weights 93.8 MiB planned, 94.0 MiB held".
std::string memory_text(const MemoryReport& report);

}  // namespace ridge
