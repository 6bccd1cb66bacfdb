#pragma once
// What running a model file takes, by item, before anything of it is loaded.

#include "base/memory.h"
#include "engine/engine.h"

namespace ridge {

/// Bytes by item. The same arithmetic as the engine's.
struct MemoryPlan {
  int64_t weights = 0;    // as in the file; packed forms differ by a few percent
  int64_t kv = 0;         // all pages
  int64_t kv_token = 0;   // of one token over all layers
  int64_t kv_tokens = 0;  // tokens that the pages hold
  int64_t total = 0;
  std::string str() const;  // "weights 93.8 MiB, KV cache 180.0 MiB (8192 tokens of 22.5 KiB)"
};

/// Errors: kResourceExhausted when the cache of `options` exceeds 2^63 bytes; kInvalidArgument for options
/// that no engine takes.
Result<MemoryPlan> plan_memory(const GgufFile& file, const DecoderConfig& config,
                               const EngineOptions& options);

/// kResourceExhausted with every item, the sum and the limit, when the plan is more than `room`.
Status check_memory_plan(const MemoryPlan& plan, const MemoryRoom& room);

}  // namespace ridge
