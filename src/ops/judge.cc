#include "ops/judge.h"

#include <cstring>

#include "kernels/rows16/unpack.h"

namespace ridge {

void copy_elements(const Tensor& from, const Tensor& to) {
  const auto dim = [&](int d) { return d < from.rank() ? from.dim(d) : 1; };
  for (int64_t i = 0; i < dim(0); ++i)
    for (int64_t j = 0; j < dim(1); ++j)
      for (int64_t k = 0; k < dim(2); ++k)
        for (int64_t l = 0; l < dim(3); ++l) to.set(from.f64(i, j, k, l), i, j, k, l);
}

Result<HostOperand> host_copy(const Tensor& t) {
  RIDGE_ASSIGN(HostOperand out, HostOperand::make(t.dtype, t.shape, Layout::kDense));
  if (t.layout != nullptr)
    rows16::unpack(t, out.tensor().data);
  else if (t.is_dense())
    std::memcpy(out.tensor().data, t.data, static_cast<size_t>(t.bytes()));
  else
    copy_elements(t, out.tensor());
  return out;
}

}  // namespace ridge
