#pragma once
// Files from outside are read by position, with their size known first; files of ours appear whole or not at
// all.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace ridge {

/// A regular file for positioned reads, or memory that stands for one (tests, fuzzing). Reads are
/// thread-safe.
class InputFile {
 public:
  InputFile() = default;
  /// Errors: kNotFound, or kIo: with the system's reason, or for a directory, a pipe or a device.
  static Result<InputFile> open(const std::string& path);
  /// `bytes` must outlive the result; `name` stands for the path in messages.
  static InputFile borrow(std::span<const std::byte> bytes, std::string name);
  InputFile(InputFile&& other) noexcept { swap(other); }
  InputFile& operator=(InputFile&& other) noexcept {
    InputFile(std::move(other)).swap(*this);
    return *this;
  }
  ~InputFile();

  const std::string& path() const { return path_; }
  /// Size when it was opened.
  uint64_t bytes() const { return bytes_; }
  /// Exactly `count` bytes from `offset` on into `out`. A file that has shrunk since it was opened is an
  /// error (kIo), never zeros.
  Status read(uint64_t offset, uint64_t count, void* out) const;

 private:
  void swap(InputFile& other) noexcept;

  std::string path_;
  int descriptor_ = -1;
  const std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

/// A file that is written aside, in the folder of its target, and takes the target's name in commit(). Until
/// then, and after any error, the old file is untouched; what was written aside is removed.
class OutputFile {
 public:
  /// Errors: kIo with path and reason; kInvalidArgument when `path` exists and is not a regular file.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept { swap(other); }
  OutputFile& operator=(OutputFile&& other) noexcept {
    OutputFile(std::move(other)).swap(*this);
    return *this;
  }
  ~OutputFile();

  /// Appends. Errors name the path, the bytes that were to be written and the bytes that were (disk full:
  /// remedy).
  Status write(std::string_view bytes);
  Status write(const void* bytes, int64_t count) {
    return write(std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(count)));
  }
  /// Bytes appended so far.
  int64_t position() const { return flushed_ + static_cast<int64_t>(pending_.size()); }
  /// Flushes, syncs, renames, syncs the folder.
  Status commit();

 private:
  OutputFile() = default;
  void swap(OutputFile& other) noexcept;
  Status flush(std::string_view bytes);
  Status failed(std::string_view action, int error) const;

  std::string path_, aside_;
  int descriptor_ = -1;
  int64_t flushed_ = 0;
  std::string pending_;  // small writes are gathered
};

/// What OutputFile::create would say of `path`, before long work whose result is to be written there.
Status check_writable(const std::string& path);

/// `bytes` become the content of `path`, or the old content stays. Errors as OutputFile.
Status write_file_atomically(const std::string& path, std::string_view bytes);

/// The whole of a regular file; kResourceExhausted, with both numbers, when it is larger than `limit` bytes.
Result<std::string> read_file(const std::string& path, int64_t limit);

}  // namespace ridge
