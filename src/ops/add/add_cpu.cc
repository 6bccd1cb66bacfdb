// Limit: bandwidth of the level where a and b were just written.

#include "ops/add/add.h"
#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

Decline dense_rows(const AddArgs& a) {
  if (!a.a.rows_are_dense() || !a.b.rows_are_dense() || !a.y.rows_are_dense())
    return decline("strides along columns: make the rows dense");
  return {};
}

Status run(Stream& stream, const AddArgs& a) {
  const int64_t columns = a.y.dim(1);
  return with_dtype<float, bf16>(a.y, [&]<class T>(T) {
    return as_cpu(stream).for_each(
        a.y.dim(0), 3.0 * sizeof(T) * static_cast<double>(columns), [&](int64_t r) {
          const T *x = a.a.row<T>(r), *z = a.b.row<T>(r);
          T* y = a.y.row<T>(r);
          simd::for_each(columns, [&](int64_t i, int live) {
            simd::store(y + i, simd::load(x + i, live) + simd::load(z + i, live), live);
          });
        });
  });
}

}  // namespace

void add_cpu(Kernels<AddArgs>& kernels) {
  kernels.add("add_by_row", dense_rows, run);
}

}  // namespace ridge::RIDGE_ISA
