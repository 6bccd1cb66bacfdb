#include "formats/gguf_cursor.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>  // its macros do nothing in a build without the sanitizer
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

namespace ridge {

namespace {
constexpr int64_t kStep = 256 << 10;  // bytes of the first read
constexpr int64_t kPage = 4096;
void unmap(void* start, int64_t bytes) {
  ::munmap(start, static_cast<size_t>(bytes));
}
}  // namespace

GgufCursor::~GgufCursor() {
  if (memory_ != nullptr) unmap(memory_, reserved_);
}

Status GgufCursor::reserve() {
  const uint64_t largest = std::min(file_.bytes(), limits::kGgufHeaderBytes);
  reserved_ = round_up(static_cast<int64_t>(largest) + 1, kPage);
  void* const start = ::mmap(nullptr, static_cast<size_t>(reserved_), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    return resource_exhausted(file_.path(), ": no address space for a header of ", reserved_, " bytes");
  memory_ = static_cast<std::byte*>(start);
  return {};
}

Status GgufCursor::refuse(uint64_t count, std::string_view what) const {
  if (count > left())
    return corrupt(file_.path(), ": truncated at byte ", file_.bytes(), ": ", what, " at byte ", at_,
                   " takes ", count, " bytes, ", left(), " are left");
  return resource_exhausted(file_.path(), ": ", what, " at byte ", at_, " takes ", count,
                            " bytes, which ends beyond the limit of a header, ", limits::kGgufHeaderBytes);
}

// Doubling: a long header takes few reads, a short one reads little of the tensors.
Status GgufCursor::load(uint64_t end) {
  const uint64_t size = std::min(file_.bytes(), limits::kGgufHeaderBytes);
  const uint64_t ahead = std::min(size, std::max(end, loaded_ + std::max<uint64_t>(loaded_, kStep)));
  const int64_t pages = round_up(static_cast<int64_t>(ahead), kPage);
  if (::mprotect(memory_, static_cast<size_t>(pages), PROT_READ | PROT_WRITE) != 0)
    return resource_exhausted(file_.path(), ": no memory for a header of ", ahead, " bytes");
  // Page ends are not the file's end: with the sanitizer a read beyond it is seen.
  ASAN_UNPOISON_MEMORY_REGION(memory_, static_cast<size_t>(pages));
  ASAN_POISON_MEMORY_REGION(memory_ + ahead, static_cast<size_t>(pages) - ahead);
  RIDGE_TRY(file_.read(loaded_, ahead - loaded_, memory_ + loaded_));
  loaded_ = ahead;
  return {};
}

Buffer GgufCursor::finish() {
  const int64_t kept = round_up(std::max<int64_t>(static_cast<int64_t>(at_), 1), kPage);
  if (kept < reserved_) unmap(memory_ + kept, reserved_ - kept);
  return Buffer(std::exchange(memory_, nullptr), kept, unmap);
}

}  // namespace ridge
