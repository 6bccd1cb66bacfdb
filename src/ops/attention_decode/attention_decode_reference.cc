#include "ops/attention_decode/attention_decode.h"
#include "ops/paged_attention.h"

namespace ridge {

void attention_decode_reference(const AttentionDecodeArgs& a) {
  for (int64_t s = 0; s < a.kv_length.dim(0); ++s)
    for (int64_t head = 0; head < a.q.dim(1); ++head)
      attention_reference_row(a, s, s, head, a.kv_length.i64(s) - 1);
}

}  // namespace ridge
