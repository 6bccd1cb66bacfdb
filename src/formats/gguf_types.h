#pragma once
// The element types that a GGUF file can name. Source: the GGUF specification (ggml's docs/gguf.md) and
// ggml's public list of types with their block sizes, as of 2025.

#include <cstdint>
#include <optional>

#include "base/dtype.h"

namespace ridge {

/// A type of tensor elements: `block` elements are stored in `block_bytes` bytes.
struct GgufTensorType {
  uint32_t id;
  const char* name;  // lower case: "q3_k"
  int64_t block, block_bytes;
  std::optional<DType> dtype;  // absent: no kernel for it yet
};

/// Null for ids that the format does not know, or that it has dropped.
const GgufTensorType* gguf_tensor_type(uint32_t id);
/// The format's id of a dtype that kernels take from files; none for the others.
std::optional<uint32_t> gguf_tensor_type_id(DType dtype);

/// A type of metadata values; the numbers are the format's.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};
inline constexpr uint32_t kGgufTypeCount = 13;

constexpr bool is_integer(GgufType type) {
  return type <= GgufType::kI32 || type == GgufType::kU64 || type == GgufType::kI64;
}
const char* gguf_type_name(GgufType type);  // "u32", "string", ...
/// Bytes of a value in the file; for strings and arrays, of the shortest one.
uint64_t gguf_type_bytes(GgufType type);

}  // namespace ridge
