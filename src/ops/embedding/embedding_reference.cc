#include <vector>

#include "kernels/rows16/rows16.h"
#include "ops/embedding/embedding.h"

namespace ridge {

void embedding_reference(const EmbeddingArgs& a) {
  const int64_t hidden = a.w.dim(1);
  std::vector<float> row(static_cast<size_t>(hidden));
  for (int64_t t = 0; t < a.y.dim(0); ++t) {
    const int64_t id = a.ids.i64(t);
    if (id < 0 || id >= a.w.dim(0)) {
      for (int64_t h = 0; h < hidden; ++h) a.y.set(0, t, h);
      continue;
    }
    // Packed weights come here only when y has strides that no kernel takes.
    if (a.w.layout != nullptr) rows16::decode_row(a.w.dtype, a.w.data, hidden, id, row.data());
    for (int64_t h = 0; h < hidden; ++h)
      a.y.set((a.w.layout != nullptr ? double{row[static_cast<size_t>(h)]} : a.w.f64(id, h)) * a.scale, t, h);
  }
}

}  // namespace ridge
