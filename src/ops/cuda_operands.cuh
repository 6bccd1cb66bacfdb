#pragma once
// What the CUDA kernels ask of an operator's tensors before a launch.

#include "ops/operator.h"

namespace ridge::cuda {

/// Rows start at multiples of 16 bytes and are dense.
inline bool rows_aligned(const Tensor& t) {
  if (!t) return true;
  const int64_t size = dtype_block_bytes(t.dtype);
  if (!t.rows_are_dense() || reinterpret_cast<uintptr_t>(t.data) % 16 != 0) return false;
  for (int i = 0; i + 1 < t.rank(); ++i)
    if (t.dim(i) > 1 && t.stride(i) * size % 16 != 0) return false;
  return true;
}

inline Decline dense_rows(std::initializer_list<std::pair<const char*, const Tensor*>> tensors) {
  for (const auto& [name, tensor] : tensors)
    if (*tensor && !tensor->rows_are_dense()) return decline(name, " has strides along its rows: copy it");
  return {};
}
inline Decline aligned_rows(std::initializer_list<std::pair<const char*, const Tensor*>> tensors) {
  for (const auto& [name, tensor] : tensors)
    if (!rows_aligned(*tensor))
      return decline(name, "'s rows are not dense or not aligned to 16 bytes: copy it");
  return {};
}

}  // namespace ridge::cuda
