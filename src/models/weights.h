#pragma once
// WeightStore: the tensors of a model on a device, each in the layout that its operator's kernels want.

#include <string>
#include <vector>

#include "formats/gguf.h"
#include "runtime/device.h"
#include "tensor/tensor.h"

namespace ridge {

/// One loaded tensor, for the memory plan.
struct LoadedTensor {
  std::string name;
  Tensor tensor;
  int64_t file_bytes = 0;
};

class WeightStore {
 public:
  WeightStore(Device& device, const GgufFile& file) : device_(&device), file_(&file) {}

  /// A matrix for `linear` (and the embedding, which reads the same layout): [rows, columns], packed as
  /// linear's kernels on this device want it. Errors: kNotFound; kCorrupt naming the shape found and wanted;
  /// kDeclined naming the type.
  Result<Tensor> matrix(const std::string& name, int64_t rows, int64_t columns);
  /// A vector in f32 (norm weights, biases), decoded from whatever plain type it has.
  Result<Tensor> vector(const std::string& name, int64_t elements);
  bool has(const std::string& name) const { return file_->find_tensor(name) != nullptr; }

  const std::vector<LoadedTensor>& loaded() const { return loaded_; }
  int64_t bytes() const;
  const GgufFile& file() const { return *file_; }
  Device& device() const { return *device_; }

 private:
  Result<GgufTensor> checked(const std::string& name, const Shape& wanted) const;
  Device* device_;
  const GgufFile* file_;
  std::vector<Buffer> memory_;
  std::vector<LoadedTensor> loaded_;
};

}  // namespace ridge
