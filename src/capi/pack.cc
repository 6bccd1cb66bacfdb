// Weights in the layout that an operator's kernels want.

#include <algorithm>

#include "base/checked.h"
#include "capi/device.h"
#include "capi/tensors.h"
#include "tensor/packed.h"

namespace ridge::capi {

Result<PackedForm> packed_form(const SharedDevice& device, const AnyOperator& packer, int32_t dtype,
                               int64_t rows, int64_t columns) {
  PackedForm form;
  RIDGE_ASSIGN(form.dtype, dtype_of(dtype));
  if (rows < 0) return invalid_argument("rows is ", rows);
  if (columns < 0) return invalid_argument("columns is ", columns);
  // Layouts fill up rows and columns; 8 bytes an element are more than any takes.
  int64_t padded = 0;
  if (rows > INT64_MAX / 2 || columns > INT64_MAX / 2 ||
      !checked_mul<int64_t>(rows + 64, columns + 256, &padded) || !checked_mul<int64_t>(padded, 8, &padded))
    return invalid_argument("weights of ", rows, " rows and ", columns, " columns exceed 2^63 bytes");
  form.shape = {rows, columns};
  RIDGE_ASSIGN(form.row_bytes, tensor_bytes(form.dtype, form.shape));
  form.layout = packer.packed_layout(device.device->target(), form.dtype, form.shape);
  if (form.layout != nullptr) form.bytes = form.layout->bytes(rows, columns);
  return form;
}

}  // namespace ridge::capi

using namespace ridge;
using namespace ridge::capi;

ridge_status ridge_packed_bytes(const ridge_device* device, const char* packer, int32_t dtype, int64_t rows,
                                int64_t columns, int64_t* bytes) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(device, "device"));
    RIDGE_TRY(needed(bytes, "bytes"));
    RIDGE_ASSIGN(const AnyOperator* op, operator_named(packer));
    RIDGE_ASSIGN(const PackedForm form, packed_form(*device->shared, *op, dtype, rows, columns));
    *bytes = form.bytes;
    return {};
  });
}

ridge_status ridge_pack(ridge_device* device, const char* packer, int32_t dtype, int64_t rows,
                        int64_t columns, const void* from, int64_t from_bytes, void* packed,
                        int64_t packed_bytes) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(device, "device"));
    RIDGE_ASSIGN(const AnyOperator* op, operator_named(packer));
    RIDGE_ASSIGN(const PackedForm form, packed_form(*device->shared, *op, dtype, rows, columns));
    if (form.layout == nullptr)
      return invalid_argument(op->name(), " does not pack ", dtype_name(form.dtype),
                              ": pass the rows as they are");
    if (from_bytes != form.row_bytes)
      return invalid_argument("from_bytes is ", from_bytes, ", ", dtype_name(form.dtype), " ",
                              form.shape.str(), " has ", form.row_bytes);
    if (packed_bytes < form.bytes)
      return invalid_argument("packed_bytes is ", packed_bytes, ", needs ", form.bytes);
    if (form.row_bytes > 0) RIDGE_TRY(needed(from, "from"));
    if (form.bytes > 0) RIDGE_TRY(needed(packed, "packed"));
    RIDGE_TRY(check_element_aligned(from, form.dtype, "from"));
    RIDGE_TRY(check_aligned(packed, "packed"));
    const Tensor source(const_cast<void*>(from), form.dtype, form.shape);
    const int64_t step = std::max<int64_t>(1, op->pack_granularity()), pieces = ceil_div(rows, step);
    const std::lock_guard lock(device->shared->running);
    CpuStream stream(*device->shared->device);
    return stream.for_ranges(pieces, static_cast<double>(form.bytes) / std::max(1.0, double(pieces)),
                             [&](int64_t first, int64_t last, int) {
                               op->pack_rows(source, *form.layout, packed, first * step,
                                             std::min(last * step, rows));
                             });
  });
}
