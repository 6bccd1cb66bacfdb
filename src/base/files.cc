#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace ridge {

namespace {

constexpr size_t kGather = 1 << 20;  // bytes of small writes that are gathered into one
const char* const kNoMemory = "no memory for the name or the buffer of a file";
constexpr uint64_t kTransfer = 1u << 30;  // a system call moves less than 2^31 bytes

std::string reason(int error) {
  return std::strerror(error);
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// A link keeps pointing where it did: the file behind it is replaced, not the link.
std::string follow_links(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  return resolved == nullptr ? path : resolved.get();  // null: it does not exist yet
}

}  // namespace

void InputFile::swap(InputFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<InputFile> InputFile::open(const std::string& path) try {
  if (path.find('\0') != std::string::npos)
    return invalid_argument("path ", printable(path), " holds a zero byte");
  InputFile file;
  file.path_ = path;
  // O_NONBLOCK: opening a pipe that nobody writes to would wait forever.
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) {
    const int error = errno;
    if (error == ENOENT) return not_found(path, ": no such file");
    return io_error(path, ": cannot open: ", reason(error));
  }
  struct stat facts;
  if (::fstat(file.descriptor_, &facts) != 0) return io_error(path, ": cannot stat: ", reason(errno));
  if (!S_ISREG(facts.st_mode)) return io_error(path, " is ", kind_of(facts.st_mode), ", not a file");
  file.bytes_ = static_cast<uint64_t>(facts.st_size);
  return file;
} catch (const std::bad_alloc&) {
  return resource_exhausted(kNoMemory);
}

InputFile InputFile::borrow(std::span<const std::byte> bytes, std::string name) {
  InputFile file;
  file.path_ = std::move(name);
  file.memory_ = bytes.data();
  file.bytes_ = bytes.size();
  return file;
}

Status InputFile::read(uint64_t offset, uint64_t count, void* out) const {
  if (offset > bytes_ || count > bytes_ - offset)
    return invalid_argument(path_, ": bytes ", offset, " + ", count, " are outside the file of ", bytes_,
                            " bytes");
  if (descriptor_ < 0) {
    if (count > 0) std::memcpy(out, memory_ + offset, count);
    return {};
  }
  auto* to = static_cast<std::byte*>(out);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_, to, std::min(count, kTransfer), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return io_error(path_, ": cannot read ", count, " bytes at byte ", offset, ": ", reason(errno));
    }
    if (got == 0)
      return io_error(path_, ": truncated at byte ", offset, " while it was being read: it had ", bytes_,
                      " bytes when it was opened");
    to += got, offset += static_cast<uint64_t>(got), count -= static_cast<uint64_t>(got);
  }
  return {};
}

void OutputFile::swap(OutputFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(aside_, other.aside_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(flushed_, other.flushed_);
  std::swap(pending_, other.pending_);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

Result<OutputFile> OutputFile::create(const std::string& path) try {
  static std::atomic<uint64_t> serial{0};
  OutputFile file;
  file.path_ = follow_links(path);
  struct stat old;
  const bool exists = ::stat(file.path_.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode))
    return invalid_argument(path, " is ", kind_of(old.st_mode), ": name a regular file to write");
  std::string aside = text(file.path_, ".", static_cast<int64_t>(::getpid()), ".", serial++, ".partial");
  file.descriptor_ = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.descriptor_ < 0) return io_error(path, ": cannot create it: ", reason(errno));
  file.aside_ = std::move(aside);
  if (exists)
    (void)::fchmod(file.descriptor_, old.st_mode & 0777);  // on file systems without modes: as created
  return file;
} catch (const std::bad_alloc&) {
  return resource_exhausted(kNoMemory);
}

Status OutputFile::failed(std::string_view action, int error) const {
  const std::string remedy = error == ENOSPC || error == EDQUOT ? ": free some space or write elsewhere" : "";
  return io_error(path_, ": cannot ", action, " (", flushed_,
                  " bytes were written aside, the old file is as it was): ", reason(error), remedy);
}

Status OutputFile::flush(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), std::min<size_t>(bytes.size(), kTransfer));
    if (put < 0) {
      if (errno == EINTR) continue;
      return failed(text("write ", bytes.size(), " bytes at byte ", flushed_), errno);
    }
    flushed_ += put;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

Status OutputFile::write(std::string_view bytes) try {
  if (descriptor_ < 0) return internal_error(path_, ": written after commit");
  if (pending_.size() + bytes.size() < kGather) {
    pending_.append(bytes);
    return {};
  }
  RIDGE_TRY(flush(pending_));
  pending_.clear();
  return flush(bytes);
} catch (const std::bad_alloc&) {
  return resource_exhausted(kNoMemory);
}

Status OutputFile::commit() try {
  if (descriptor_ < 0) return internal_error(path_, ": committed twice");
  RIDGE_TRY(flush(pending_));
  pending_.clear();
  if (::fsync(descriptor_) != 0) return failed(text("sync ", flushed_, " bytes"), errno);
  if (::close(std::exchange(descriptor_, -1)) != 0)
    return failed(text("close after ", flushed_, " bytes"), errno);
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) return failed(text("rename ", aside_, " to it"), errno);
  aside_.clear();
  // From here on nothing may fail: the new file is in place. Its name survives a power cut only once its
  // folder is on disk; some file systems cannot sync a folder.
  if (const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); descriptor >= 0) {
    (void)::fsync(descriptor);
    ::close(descriptor);
  }
  return {};
} catch (const std::bad_alloc&) {
  return resource_exhausted(kNoMemory);
}

Status check_writable(const std::string& path) {
  return OutputFile::create(path).status();
}

Status write_file_atomically(const std::string& path, std::string_view bytes) try {
  RIDGE_ASSIGN(OutputFile file, OutputFile::create(path));
  RIDGE_TRY(file.write(bytes));
  return file.commit();
} catch (const std::bad_alloc&) {
  return resource_exhausted(path, ": no memory to write ", bytes.size(), " bytes");
}

Result<std::string> read_file(const std::string& path, int64_t limit) try {
  RIDGE_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.bytes() > static_cast<uint64_t>(limit))
    return resource_exhausted(path, " has ", file.bytes(), " bytes, the limit is ", limit);
  std::string out(file.bytes(), '\0');
  RIDGE_TRY(file.read(0, file.bytes(), out.data()));
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted(path, ": no memory to read it");
}

}  // namespace ridge
