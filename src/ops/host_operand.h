#pragma once
// Operands of a call in host memory of their own, for conformance, the judge and examples, and their copies
// on a device.

#include <string>

#include "base/random.h"
#include "base/status.h"
#include "runtime/device.h"
#include "tensor/packed.h"
#include "tensor/tensor.h"

namespace ridge {

enum class Layout {
  kDense,
  kGapped
};  // kGapped: rows apart by a few poisoned elements and off alignment by one

/// Host memory of one operand. Copying a value copies its bytes to new memory.
class HostOperand {
 public:
  HostOperand() = default;
  /// Everything, gaps and guards included, starts poisoned: NaN, or 2147480000 for indices.
  static Result<HostOperand> make(DType dtype, const Shape& shape, Layout layout);
  static Result<HostOperand> make_packed(const PackedLayout& layout, DType dtype, const Shape& shape);
  Result<HostOperand> copy() const;
  const Tensor& tensor() const { return tensor_; }
  void* base() const { return memory_.data(); }
  int64_t bytes() const { return memory_.bytes(); }
  int64_t offset() const { return offset_; }
  /// Random values: normal floats, encoded blocks, any integer byte. Index types are left poisoned.
  void fill(Random& random);
  void make_absolute();
  /// "" or what was written outside the elements.
  std::string damage(const HostOperand& before) const;

 private:
  Buffer memory_;
  int64_t offset_ = 0;
  Tensor tensor_;
};

/// |got - want| against bound plus half an ulp of got's dtype for each of `roundings`; bound ratio in *ratio.
/// False when it fails.
bool within(double got, double want, double bound, DType dtype, double* ratio, int roundings = 1);

/// Copies of host operands on a device, and the way back.
class DeviceOperand {
 public:
  static Result<DeviceOperand> upload(Device& device, const HostOperand& host);
  Status download(Device& device, HostOperand* host) const;
  Tensor tensor() const { return tensor_; }

 private:
  Buffer memory_;
  Tensor tensor_;
};

}  // namespace ridge
