#include "ops/kv_slots.h"

namespace ridge {

int64_t fill_slots(const Tensor& slots, int64_t places, int64_t skipped, Random& random) {
  std::vector<int64_t> free;
  for (int64_t i = 0; i < places; ++i) free.push_back(i);
  int64_t written = 0;
  for (int64_t t = 0; t < slots.dim(0); ++t) {
    if (t % skipped == skipped - 1 || free.empty()) {
      slots.set(-1, t);
      continue;
    }
    const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(free.size())));
    slots.set(static_cast<double>(free[at]), t);
    free[at] = free.back(), free.pop_back();
    ++written;
  }
  return written;
}

int64_t written_tokens(const Dims& d) {
  return d["written"] < 0 ? d["tokens"] : d["written"];
}
int64_t written_elements(const Dims& d) {
  return written_tokens(d) * d["kv_heads"] * d["head_dim"];
}
int64_t written_scales(const Dims& d) {
  return written_tokens(d) * d["kv_heads"];
}

}  // namespace ridge
