#pragma once
// Handles of devices, streams and calls.

#include <mutex>

#include "capi/boundary.h"
#include "ops/any_operator.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge::capi {

/// Shared by all handles made from it, so that they may be destroyed in any order.
struct SharedDevice {
  std::unique_ptr<CpuDevice> device;
  std::mutex running;  // its threads serve one call at a time
};

/// Errors: kNotFound naming the operators that there are.
Result<AnyOperator*> operator_named(const char* name);

/// The layout that `packer` gives weights [rows, columns] on this device, null when it keeps the rows as they
/// are; `bytes` then 0. Errors: sizes below 0 or too large, rows that are not whole blocks.
struct PackedForm {
  const PackedLayout* layout = nullptr;
  Shape shape;
  DType dtype = kF32;
  int64_t bytes = 0, row_bytes = 0;  // packed; of all rows as they are
};
Result<PackedForm> packed_form(const SharedDevice& device, const AnyOperator& packer, int32_t dtype,
                               int64_t rows, int64_t columns);

}  // namespace ridge::capi

struct ridge_device {
  std::shared_ptr<ridge::capi::SharedDevice> shared;
};
struct ridge_stream {
  std::shared_ptr<ridge::capi::SharedDevice> shared;
  std::unique_ptr<ridge::Stream> stream;
};
struct ridge_call {
  std::shared_ptr<ridge::capi::SharedDevice> shared;
  ridge::AnyOperator* op = nullptr;
  std::shared_ptr<void> args;
};
