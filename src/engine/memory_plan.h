#pragma once
// What running a model file takes, by item, before anything of it is loaded.

#include "base/memory.h"
#include "engine/engine.h"

namespace ridge {

/// A format of keys and values: bytes of one token in it, over all layers.
struct KvFormatBytes {
  DType type;
  int64_t token;
};

/// Bytes by item. The same arithmetic as the engine's.
struct MemoryPlan {
  int64_t weights = 0;      // as in the file; packed forms differ by a few percent
  int64_t unquantized = 0;  // of them: norms, biases and what else the file keeps in a plain type
  int64_t kv = 0;           // all pages
  int64_t kv_token = 0;     // of one token over all layers
  int64_t kv_tokens = 0;    // tokens that the pages hold
  int64_t total = 0;
  // What the pages are for, and the formats that would take less.
  int64_t sequences = 0, context = 0, page_size = 0;
  int64_t needed = 0;  // tokens that each sequence will have, where that is known: no context below it fits
  std::vector<KvFormatBytes> smaller_kv;
  /// "weights 93.8 MiB (2.1 MiB unquantized), KV cache 180.0 MiB (8192 tokens of 22.5 KiB)"
  std::string str() const;
};

/// Errors: kResourceExhausted when the cache of `options` exceeds 2^63 bytes; kInvalidArgument for options
/// that no engine takes.
Result<MemoryPlan> plan_memory(const GgufFile& file, const DecoderConfig& config,
                               const EngineOptions& options);

/// What of the plan `bytes` would hold, as the options that say so: the longest context, the most sequences,
/// and what smaller KV formats allow, each of at least plan.needed tokens. "--context 4096, or 3 sequences,
/// or
/// --kv q8".
std::string what_fits(const MemoryPlan& plan, int64_t bytes);

/// kResourceExhausted with every item, the sum, the limit and what would fit, when the plan is more than
/// `room`.
Status check_memory_plan(const MemoryPlan& plan, const MemoryRoom& room);

}  // namespace ridge
