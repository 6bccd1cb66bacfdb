#pragma once
// Reads a file's first bytes in order into memory whose address does not change, hardly further ahead than
// asked for, so that a claimed length costs nothing until the file has proved to hold it.

#include <bit>
#include <cstring>
#include <string_view>

#include "base/files.h"
#include "base/limits.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace ridge {

static_assert(std::endian::native == std::endian::little, "values are copied from the file as they are");

class GgufCursor {
 public:
  explicit GgufCursor(const InputFile& file) : file_(file) {}
  GgufCursor(const GgufCursor&) = delete;
  GgufCursor& operator=(const GgufCursor&) = delete;
  ~GgufCursor();

  /// Reserves addresses, not memory, for the largest header that the file can have.
  Status reserve();

  const InputFile& file() const { return file_; }
  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.bytes() - at_; }
  const std::byte* here() const { return memory_ + at_; }

  /// Makes the next `count` bytes readable; the error says what (in words) they were to be.
  template <class... P>
  Status need(uint64_t count, const P&... what) {
    if (count <= loaded_ - at_) return {};
    if (count > left() || count > limits::kGgufHeaderBytes - at_) return refuse(count, text(what...));
    return load(at_ + count);
  }
  void skip(uint64_t count) { at_ += count; }  // of bytes that need() made readable

  template <class T>
  T take() {
    T value;
    std::memcpy(&value, here(), sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string_view take_text(uint64_t count) {
    const std::string_view out(reinterpret_cast<const char*>(here()), count);
    at_ += count;
    return out;
  }

  /// The bytes up to here, handed to an owner; views into them stay valid.
  Buffer finish();

 private:
  Status load(uint64_t end);
  Status refuse(uint64_t count, std::string_view what) const;

  const InputFile& file_;
  std::byte* memory_ = nullptr;
  int64_t reserved_ = 0;
  uint64_t loaded_ = 0, at_ = 0;
};

}  // namespace ridge
