#pragma once
// GGUF model files, versions 2 and 3, little-endian, read as hostile input: every count, length and offset is
// checked against the file and against base/limits.h before anything is allocated for it, so that opening
// takes no more memory than the file's own metadata and some 40 MiB. Source: the GGUF specification (ggml's
// docs/gguf.md).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/limits.h"
#include "base/status.h"
#include "formats/gguf_types.h"
#include "tensor/tensor.h"

namespace ridge {

/// One metadata entry. Views into the GgufFile, valid as long as it lives.
struct GgufEntry {
  std::string_view key;
  GgufType type;
  GgufType element;        // of an array; otherwise as `type`
  uint64_t count = 1;      // elements of an array; otherwise 1
  const std::byte* value;  // in the file's encoding; of an array, its first element; of a string, its length
};

/// "u32", "array of string".
std::string gguf_entry_type(const GgufEntry& entry);
/// The value for people: strings quoted and cut, of arrays the first elements. `limit` bounds a string's
/// bytes.
std::string gguf_entry_text(const GgufEntry& entry, size_t limit = 80);

/// One row of the tensor table. `name` is a view into the GgufFile.
struct GgufTensor {
  std::string_view name;
  const GgufTensorType* type = nullptr;  // type->dtype is absent where no kernel takes it yet
  Shape shape;                           // outermost first: the file's dims reversed
  int64_t offset = 0;                    // of its first byte, from the start of the file
  int64_t bytes = 0;
};

/// What parsing a file yields. Views point into `header`.
struct GgufContents {
  uint32_t version = 0;
  int64_t alignment = 32;
  int64_t data_offset = 0;             // first byte of the tensor data in the file
  int64_t data_bytes = 0;              // from there to the end of the last tensor
  std::vector<GgufEntry> entries;      // in the file's order
  std::vector<GgufTensor> tensors;     // in the file's order, which is that of their offsets
  std::vector<uint32_t> entry_order;   // indices sorted by key
  std::vector<uint32_t> tensor_order;  // indices sorted by name
  Buffer header;                       // the file's first bytes, all before the tensor data
};

/// An open GGUF file. Const calls are thread-safe. Getters of metadata come in pairs: get_* takes a missing
/// key for an error (kNotFound), find_* answers nullopt; in both a value of another type is an error
/// (kCorrupt) that names key, type found and type wanted. Integers of any width convert where the value fits,
/// f64 rounds to f32.
class GgufFile {
 public:
  /// Errors: kNotFound or kIo (the file), kCorrupt (its content), kDeclined (a version or byte order that is
  /// not read here), kResourceExhausted (a limit). Each names the file, the key, tensor or byte, the value
  /// and the limit.
  static Result<GgufFile> open(const std::string& path);
  /// The same over memory, which must outlive the result; `name` stands for the path.
  static Result<GgufFile> open_memory(std::span<const std::byte> bytes, std::string name);

  const std::string& path() const { return file_.path(); }
  uint64_t file_bytes() const { return file_.bytes(); }
  uint32_t version() const { return contents_.version; }
  int64_t alignment() const { return contents_.alignment; }
  int64_t data_offset() const { return contents_.data_offset; }
  int64_t data_bytes() const { return contents_.data_bytes; }

  // Metadata
  const std::vector<GgufEntry>& entries() const { return contents_.entries; }
  const GgufEntry* entry(std::string_view key) const;  // null: no such key
  bool has(std::string_view key) const { return entry(key) != nullptr; }

  Result<uint64_t> get_u64(std::string_view key) const;
  Result<int64_t> get_i64(std::string_view key) const;
  Result<float> get_f32(std::string_view key) const;  // finite, or an error
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;
  Result<std::optional<uint64_t>> find_u64(std::string_view key) const;
  Result<std::optional<int64_t>> find_i64(std::string_view key) const;
  Result<std::optional<float>> find_f32(std::string_view key) const;
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> find_string(std::string_view key) const;

  /// Arrays of at most `limit` elements (kResourceExhausted beyond): what is returned takes up to 16 bytes an
  /// element whatever the file spends on one. To ask without an error for a missing key: has(key).
  Result<std::vector<std::string_view>> get_string_array(std::string_view key,
                                                         int64_t limit = limits::kVocabulary) const;
  Result<std::vector<float>> get_f32_array(std::string_view key, int64_t limit = limits::kVocabulary) const;
  Result<std::vector<int32_t>> get_i32_array(std::string_view key, int64_t limit = limits::kVocabulary) const;
  Result<std::vector<bool>> get_bool_array(std::string_view key, int64_t limit = limits::kVocabulary) const;

  // Tensors
  const std::vector<GgufTensor>& tensors() const { return contents_.tensors; }
  const GgufTensor* find_tensor(std::string_view name) const;  // null: no such tensor
  /// A tensor that kernels can take: type->dtype is present. Errors: kNotFound; kDeclined, naming its type.
  Result<GgufTensor> tensor(std::string_view name) const;

  /// Reads a tensor's bytes to `out`, which has room for tensor.bytes.
  Status read(const GgufTensor& tensor, void* out) const;
  /// Reads `count` bytes of a tensor from its byte `first` on.
  Status read_range(const GgufTensor& tensor, int64_t first, int64_t count, void* out) const;
  /// All tensor data, read (not mapped: packing from a mapping was measured five times slower) into huge
  /// pages by `threads` threads. Tensors lie at their offset less data_offset(): view() makes them Tensors.
  /// Errors: kIo; kResourceExhausted when it is more than this process may take (base/memory.h).
  Result<Buffer> read_all(int threads) const;
  /// `tensor`, which has a dtype, within what read_all gave.
  Tensor view(const GgufTensor& tensor, const Buffer& data) const;

 private:
  static Result<GgufFile> parse(InputFile file);
  Status wrong_type(const GgufEntry& entry, std::string_view wanted) const;
  Status missing(std::string_view key, std::string_view wanted) const;
  template <class T>
  Result<std::optional<T>> find_integer(std::string_view key, const char* wanted) const;
  template <class T>
  Result<T> required(Result<std::optional<T>> found, std::string_view key, const char* wanted) const;
  Result<const GgufEntry*> array(std::string_view key, const char* wanted, int64_t limit) const;

  InputFile file_;
  GgufContents contents_;
};

/// What the first bytes of a file that is no GGUF file say it is: "a Git LFS pointer", "an HTML page"; empty:
/// unknown.
std::string_view foreign_file_kind(std::string_view first_bytes);

}  // namespace ridge
