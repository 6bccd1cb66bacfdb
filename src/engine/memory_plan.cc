#include "engine/memory_plan.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "engine/option_names.h"

namespace ridge {

namespace {

/// The longest context, of whole pages, that `bytes` hold for all sequences; 0: none of what is needed.
int64_t context_that_fits(const MemoryPlan& plan, int64_t token_bytes, int64_t bytes) {
  const int64_t pages = bytes / std::max<int64_t>(1, plan.page_size * token_bytes) / plan.sequences;
  const int64_t context = std::min(plan.context, pages * plan.page_size);
  return context < plan.needed ? 0 : context;
}

}  // namespace

std::string MemoryPlan::str() const {
  return text("weights ", bytes_text(double(weights)), " (", bytes_text(double(unquantized)), " unquantized)",
              ", KV cache ", bytes_text(double(kv)), " (", kv_tokens, " tokens of ",
              bytes_text(double(kv_token)), ")");
}

Result<MemoryPlan> plan_memory(const GgufFile& file, const DecoderConfig& c, const EngineOptions& options) {
  RIDGE_ASSIGN(const EngineOptions checked, InferenceEngine::checked(c, options));
  const KvOptions& kv = checked.kv;
  MemoryPlan p;
  p.weights = file.data_bytes();
  for (const GgufTensor& t : file.tensors())
    if (t.type->dtype && !is_block_quantized(*t.type->dtype)) p.unquantized += t.bytes;
  const std::vector<KvShape> shapes(static_cast<size_t>(c.layers), {c.kv_heads, c.head_dim, 0});
  p.kv_token = KvPool::token_bytes(shapes, kv);
  p.sequences = checked.max_sequences, p.context = kv.context, p.page_size = kv.page_size;
  for (const DType type : {kF16, kI8}) {
    KvOptions other = kv;
    other.k_type = other.v_type = type;
    if (const int64_t token = KvPool::token_bytes(shapes, other); token < p.kv_token)
      p.smaller_kv.push_back({type, token});
  }
  if (!checked_mul(kv.pages, kv.page_size, &p.kv_tokens) || !checked_mul(p.kv_tokens, p.kv_token, &p.kv) ||
      !checked_add(p.weights, p.kv, &p.total))
    return resource_exhausted("the KV cache of ", options.max_sequences, " sequences of ", kv.context,
                              " tokens exceeds 2^63 bytes: lower --context");
  return p;
}

std::string what_fits(const MemoryPlan& plan, int64_t bytes) {
  const int64_t left = bytes - plan.weights;
  if (left <= 0)
    return text("the weights alone are more, by ", bytes_text(double(-left)),
                ": a smaller model, or one of smaller weights");
  std::string fits;
  const auto add = [&](const std::string& what) { fits += text(fits.empty() ? "" : ", or ", what); };
  if (const int64_t context = context_that_fits(plan, plan.kv_token, left); context > 0)
    add(text("--context ", context));
  const int64_t each = ceil_div(plan.context, plan.page_size) * plan.page_size;
  if (const int64_t sequences = left / std::max<int64_t>(1, each * plan.kv_token);
      sequences > 0 && plan.sequences > 1)
    add(text(std::min(sequences, plan.sequences), sequences == 1 ? " sequence" : " sequences", " of ",
             plan.context, " tokens"));
  for (const KvFormatBytes& kv : plan.smaller_kv)
    if (const int64_t context = context_that_fits(plan, kv.token, left); context == plan.context)
      add(text("--kv ", kv_name(kv.type)));
    else if (context > 0)
      add(text("--kv ", kv_name(kv.type), " --context ", context));
  if (!fits.empty()) return fits;
  const std::string least = plan.needed > 0 ? text("the ", plan.needed) : text("a page of ", plan.page_size);
  return text("not ", least, " tokens for each of ", plan.sequences,
              " sequences: a smaller model, or fewer sequences", plan.needed > 0 ? ", or shorter ones" : "");
}

Status check_memory_plan(const MemoryPlan& plan, const MemoryRoom& room) {
  if (plan.total <= room.bytes) return {};
  return resource_exhausted("running it takes ", bytes_text(double(plan.total)), " (", plan.str(), "), ",
                            bytes_text(double(room.bytes)), " can be taken: ", room.why,
                            "; what would fit: ", what_fits(plan, room.bytes));
}

}  // namespace ridge
