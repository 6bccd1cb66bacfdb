#include "lab/workload_json.h"

namespace ridge {

nlohmann::ordered_json workload_json(const Workload& w) {
  return {{"model", w.model},
          {"weight_format", w.weight_format},
          {"kv_format", w.kv_format},
          {"activation_format", w.activation_format},
          {"device", w.device},
          {"prompt_tokens", w.prompt_tokens},
          {"output_tokens", w.output_tokens},
          {"batch", w.batch},
          {"prefill_chunk", w.prefill_chunk},
          {"prefix_hit_tokens", w.prefix_hit_tokens},
          {"sampling", w.sampling},
          {"fusions", w.fusions},
          {"constrained_decoding", w.constrained}};
}

}  // namespace ridge
