#pragma once
// GGUF files written byte by byte, so that a test can lie where GgufWriter does not.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "formats/gguf.h"

namespace ridge {

/// Encodes a file in order: header(), records, then pad_to_data() and the data.
class GgufBytes {
 public:
  template <class T>
  GgufBytes& put(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& raw(std::string_view bytes) {
    out_ += bytes;
    return *this;
  }
  GgufBytes& str(std::string_view value) { return put<uint64_t>(value.size()).raw(value); }
  GgufBytes& header(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
    return raw("GGUF").put(version).put(tensors).put(entries);
  }
  GgufBytes& key(std::string_view key, uint32_t type) { return str(key).put(type); }
  GgufBytes& u32(std::string_view name, uint32_t value) { return key(name, 4).put(value); }
  /// Dims in the file's order: innermost first.
  GgufBytes& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                    uint64_t offset) {
    str(name).put(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) put(dim);
    return put(type).put(offset);
  }
  GgufBytes& pad_to_data(size_t alignment = 32) {
    while (out_.size() % alignment != 0) out_ += '\0';
    return *this;
  }
  GgufBytes& data(size_t bytes) {
    out_.append(bytes, '\0');
    return *this;
  }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

inline Result<GgufFile> open_gguf(std::string_view bytes) {
  return GgufFile::open_memory(std::as_bytes(std::span(bytes.data(), bytes.size())), "model.gguf");
}

/// The bytes are refused with `code`, and the one-line message names the file and holds each of `parts`.
inline void expect_refused(std::string_view bytes, Code code, std::initializer_list<std::string_view> parts) {
  const auto file = open_gguf(bytes);
  ASSERT_FALSE(file.ok()) << "accepted; wanted an error with " << *parts.begin();
  const std::string& message = file.status().message();
  EXPECT_EQ(code_name(file.status().code()), std::string_view(code_name(code))) << message;
  EXPECT_EQ(message.find("model.gguf"), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const std::string_view part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "lacks \"" << part << "\": " << message;
}

}  // namespace ridge
