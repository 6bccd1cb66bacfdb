#include "base/stop.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/paged_attention.h"

namespace ridge {

void attention_prefill_reference(const AttentionPrefillArgs& a) {
  for (int64_t s = 0; s < a.kv_length.dim(0); ++s) {
    const int64_t first = a.query_start.i64(s), last = a.query_start.i64(s + 1);
    for (int64_t row = first; row < last && !stop_requested(); ++row)
      for (int64_t head = 0; head < a.q.dim(1); ++head)
        attention_reference_row(a, s, row, head, a.kv_length.i64(s) - last + row);
  }
}

}  // namespace ridge
