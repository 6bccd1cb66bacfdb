#pragma once
// Writes GGUF files: synthetic models, test inputs, fuzzing seeds. Streams: a tensor may be larger than
// memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/gguf_types.h"
#include "tensor/tensor.h"

namespace ridge {

class GgufWriter {
 public:
  /// Fills rows [first, first + count) of a tensor at `out`: the rows of all outer dimensions in order, in
  /// the tensor's own format. Called in order of rows, as often as write() is called.
  using Rows = std::function<Status(int64_t first, int64_t count, std::byte* out)>;

  // Metadata, in the order of the calls. A key given twice is an error of write().
  void add_u32(std::string_view key, uint32_t value) { add_scalar(key, GgufType::kU32, &value); }
  void add_i32(std::string_view key, int32_t value) { add_scalar(key, GgufType::kI32, &value); }
  void add_u64(std::string_view key, uint64_t value) { add_scalar(key, GgufType::kU64, &value); }
  void add_f32(std::string_view key, float value) { add_scalar(key, GgufType::kF32, &value); }
  void add_bool(std::string_view key, bool value) { add_scalar(key, GgufType::kBool, &value); }
  void add_string(std::string_view key, std::string_view value);
  void add_string_array(std::string_view key, std::span<const std::string> values);
  void add_f32_array(std::string_view key, std::span<const float> values);
  void add_i32_array(std::string_view key, std::span<const int32_t> values);
  /// A value of any type, already in the format's encoding.
  void add_encoded(std::string_view key, GgufType type, std::string_view value);

  /// Adds a tensor of the shape, outermost first; its bytes are read at `data` during write().
  void add_tensor(std::string_view name, DType dtype, const Shape& shape, const void* data);
  void add_tensor(std::string_view name, DType dtype, const Shape& shape, Rows rows);

  /// Writes aside, syncs and renames: `path` holds the whole file or what it held before. Errors:
  /// kInvalidArgument for what was added (a name twice, a shape of broken blocks, a dtype that the format
  /// lacks); kIo with path and bytes; what `rows` returned.
  Status write(const std::string& path, uint32_t version = 3) const;
  /// The bytes before the tensor data, without what pads them to the alignment.
  Result<std::string> header(uint32_t version = 3) const;
  /// The file's bytes.
  Result<std::string> bytes(uint32_t version = 3) const;

 private:
  struct Piece {
    std::string name;
    DType dtype;
    Shape shape;
    Rows rows;
  };
  using Sink = std::function<Status(std::string_view)>;
  void add_scalar(std::string_view key, GgufType type, const void* value);
  Status check() const;
  Status emit(uint32_t version, const Sink& sink) const;
  static Status emit_rows(const Piece& piece, const Sink& sink);

  std::vector<std::string> keys_;
  std::string metadata_;  // the records, encoded
  uint64_t alignment_ = 32;
  std::vector<Piece> tensors_;
};

}  // namespace ridge
