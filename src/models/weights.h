#pragma once
// WeightStore: the tensors of a model on a device, each in the layout that its operator's kernels want.

#include <set>
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

/// Matrices of the same input.
struct MatrixGroup {
  std::vector<Tensor> parts;  // [rows of each, columns]
  Tensor whole;               // all rows as one matrix, of the same memory; or empty
};

/// Where the values of a model come from.
enum class Values : uint8_t {
  kFile,
  kRandom,  // the file says names, shapes and types alone: for speed at real size
  kNone     // nor is anything placed: whether a file loads, found out by what loads it
};

class WeightStore {
 public:
  WeightStore(Device& device, const GgufFile& file, Values values = Values::kFile)
      : device_(&device), file_(&file), values_(values) {}

  /// A matrix for `linear` (and the embedding, which reads the same layout): [rows, columns], packed as
  /// linear's kernels on this device want it. Errors: kNotFound; kCorrupt naming the shape found and wanted;
  /// kDeclined naming the type.
  Result<Tensor> matrix(const std::string& name, int64_t rows, int64_t columns);
  /// Several of one input. On devices apart from the host, where launches cost, those of one type follow each
  /// other in memory and are one matrix too. Errors: those of matrix().
  Result<MatrixGroup> matrices(const std::vector<std::pair<std::string, int64_t>>& names_and_rows,
                               int64_t columns);
  /// A vector in f32 (norm weights, biases), decoded from whatever plain type it has.
  Result<Tensor> vector(const std::string& name, int64_t elements);
  /// The same on the host, for what the loader itself computes with.
  Result<std::vector<float>> values(const std::string& name, int64_t elements);
  /// Numbers that the model computed, as an operand of its calls: [values].
  Result<Tensor> constant(const std::string& name, const std::vector<float>& values);
  bool has(const std::string& name) const { return file_->find_tensor(name) != nullptr; }

  /// kDeclined, naming the first of the file's tensors that nothing asked for: a model that left one out
  /// would answer, and wrongly.
  Status check_all_taken() const;

  const std::vector<LoadedTensor>& loaded() const { return loaded_; }
  int64_t bytes() const;
  /// Memory taken for them, slabs' free ends included.
  int64_t held_bytes() const;
  const GgufFile& file() const { return *file_; }
  Device& device() const { return *device_; }

 private:
  /// Memory of a tensor: small ones share slabs, since each allocation of its own would take whole huge
  /// pages.
  Result<std::byte*> place(int64_t bytes);
  /// Reads a matrix piece by piece into the memory of the device, or, with a layout, packs it into memory of
  /// the host.
  Status fill(const GgufTensor& info, const PackedLayout* layout, std::byte* to) const;
  Result<Tensor> matrix_at(const GgufTensor& info, const PackedLayout* layout, std::byte* memory);
  /// Rows [first, first + count) as the file has them, or random ones.
  Status read_rows(const GgufTensor& info, int64_t first, int64_t count, std::byte* to) const;
  Result<GgufTensor> checked(const std::string& name, const Shape& wanted);
  Device* device_;
  const GgufFile* file_;
  Values values_ = Values::kFile;
  std::vector<Buffer> memory_;
  std::byte* slab_ = nullptr;  // free part of the newest slab
  int64_t slab_left_ = 0;
  std::vector<LoadedTensor> loaded_;
  std::set<std::string, std::less<>> taken_;  // names asked for
};

}  // namespace ridge
