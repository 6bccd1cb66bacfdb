#include "engine/memory_plan.h"

#include "base/checked.h"
#include "base/text.h"

namespace ridge {

std::string MemoryPlan::str() const {
  return text("weights ", bytes_text(double(weights)), ", KV cache ", bytes_text(double(kv)), " (", kv_tokens,
              " tokens of ", bytes_text(double(kv_token)), ")");
}

Result<MemoryPlan> plan_memory(const GgufFile& file, const DecoderConfig& c, const EngineOptions& options) {
  RIDGE_ASSIGN(const EngineOptions checked, InferenceEngine::checked(c, options));
  const KvOptions& kv = checked.kv;
  MemoryPlan p;
  p.weights = file.data_bytes();
  p.kv_token = KvPool::token_bytes(
      std::vector<KvShape>(static_cast<size_t>(c.layers), {c.kv_heads, c.head_dim, 0}), kv);
  if (!checked_mul(kv.pages, kv.page_size, &p.kv_tokens) || !checked_mul(p.kv_tokens, p.kv_token, &p.kv) ||
      !checked_add(p.weights, p.kv, &p.total))
    return resource_exhausted("the KV cache of ", options.max_sequences, " sequences of ", kv.context,
                              " tokens exceeds 2^63 bytes: lower --context");
  return p;
}

Status check_memory_plan(const MemoryPlan& plan, const MemoryRoom& room) {
  if (plan.total <= room.bytes) return {};
  return resource_exhausted("running it takes ", bytes_text(double(plan.total)), " (", plan.str(), "), ",
                            bytes_text(double(room.bytes)), " can be taken: ", room.why,
                            "; lower --context, or take a smaller KV format or model");
}

}  // namespace ridge
