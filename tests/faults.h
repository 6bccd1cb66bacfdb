#pragma once
// Faults on purpose (case I59): the n-th allocation or system call of a run fails. Replaces operator new and
// system calls of the whole program: include it in the one source file of a test.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <new>
#include <string>

namespace ridge::faults {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kAvailable = false;  // that sanitizer needs these functions for itself
#else
inline constexpr bool kAvailable = true;
#endif
inline std::atomic<int64_t> until_fault{0};  // 0: none is planned
inline std::atomic<int64_t> live_allocations{0};

inline bool fault() {
  return until_fault > 0 && --until_fault == 0;
}

}  // namespace ridge::faults

#if !defined(__SANITIZE_THREAD__)
// Not inlined: else the compiler sees new and delete of different families.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* const p = ridge::faults::fault() ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (p == nullptr) throw std::bad_alloc();
  ++ridge::faults::live_allocations;
  return p;
}
// What the temporary buffers of stable sorts ask; a sanitizer's own would not go with the delete below.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  if (p != nullptr) --ridge::faults::live_allocations;
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept {
  operator delete(p);
}

// In front of the C library's, for every caller in this program.
extern "C" {
void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  if (ridge::faults::fault()) return errno = ENOMEM, MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset));
}
int mprotect(void* at, size_t bytes, int protection) noexcept {
  if (ridge::faults::fault()) return errno = ENOMEM, -1;
  return static_cast<int>(syscall(SYS_mprotect, at, bytes, protection));
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  void* out = nullptr;
  return ridge::faults::fault() || posix_memalign(&out, alignment, bytes) != 0 ? nullptr : out;
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (ridge::faults::fault()) return errno = EMFILE, -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int fstat(int descriptor, struct stat* out) noexcept {
  if (ridge::faults::fault()) return errno = EIO, -1;
  return static_cast<int>(syscall(SYS_fstat, descriptor, out));
}
ssize_t read(int descriptor, void* out, size_t bytes) {
  if (ridge::faults::fault()) return errno = EIO, -1;
  return syscall(SYS_read, descriptor, out, bytes);
}
ssize_t pread(int descriptor, void* out, size_t bytes, off_t offset) {
  if (ridge::faults::fault()) return errno = EIO, -1;
  return syscall(SYS_pread64, descriptor, out, bytes, offset);
}
ssize_t write(int descriptor, const void* from, size_t bytes) {
  if (ridge::faults::fault()) return errno = ENOSPC, -1;
  return syscall(SYS_write, descriptor, from, bytes);
}
int fsync(int descriptor) {
  if (ridge::faults::fault()) return errno = EIO, -1;
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}
int rename(const char* from, const char* to) noexcept {
  if (ridge::faults::fault()) return errno = EACCES, -1;
  return static_cast<int>(syscall(SYS_rename, from, to));
}
}
#endif

namespace ridge::faults {

/// Entries of a folder, "." and ".." included.
inline int entries_of(const std::string& folder) {
  int count = 0;
  DIR* const open = opendir(folder.c_str());
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

/// Runs `attempt` with each fault in turn, then after(its answer); how many faults there were. The answer is
/// true for the right result, false for an error; the last run, which meets no fault, has to be right.
template <class Attempt, class After>
int64_t each_fault(Attempt attempt, After after) {
  for (int64_t n = 1; n < 100000; ++n) {
    const int64_t before = live_allocations;
    const int descriptors = entries_of("/proc/self/fd");
    until_fault = n;
    const bool right = attempt();
    const bool met = until_fault <= 0;
    until_fault = 0;
    EXPECT_EQ(live_allocations, before) << "fault " << n;
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors) << "fault " << n;
    after(right);
    if (testing::Test::HasFailure()) return n;
    if (!met) {
      EXPECT_TRUE(right);
      return n - 1;
    }
  }
  ADD_FAILURE() << "every run met its fault";
  return 0;
}

}  // namespace ridge::faults
