#include <cstring>

#include "ops/gather_rows/gather_rows.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge::RIDGE_ISA {

namespace {

Decline dense_rows(const GatherRowsArgs& a) {
  if (!a.x.rows_are_dense() || !a.y.rows_are_dense())
    return decline("strides along columns: make the rows dense");
  return {};
}

Status run(Stream& stream, const GatherRowsArgs& a) {
  const int64_t size = dtype_block_bytes(a.y.dtype), bytes = a.y.dim(1) * size;
  for (int64_t i = 0; i < a.y.dim(0); ++i)
    if (const int64_t row = a.index.i64(i); row < 0 || row >= a.x.dim(0))
      return invalid_argument("gather_rows: index[", i, "] is ", row, ", x has ", a.x.dim(0), " rows");
  return as_cpu(stream).for_each(a.y.dim(0), 2.0 * static_cast<double>(bytes), [&](int64_t i) {
    std::memcpy(a.y.as<std::byte>() + i * a.y.stride(0) * size,
                a.x.as<std::byte>() + a.index.i64(i) * a.x.stride(0) * size, static_cast<size_t>(bytes));
  });
}

}  // namespace

void gather_rows_cpu(Kernels<GatherRowsArgs>& kernels) {
  kernels.add("gather_rows_by_row", dense_rows, run);
}

}  // namespace ridge::RIDGE_ISA
