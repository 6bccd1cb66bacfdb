#pragma once
// KvPool: the paged cache of all sequences. A page holds page_size tokens of every layer under one page id.

#include <vector>

#include "models/model.h"

namespace ridge {

struct KvOptions {
  DType k_type = kF16, v_type = kF16;  // f32, f16, bf16, i8
  int64_t page_size = 64;
  int64_t pages = 0;
  int64_t context = 0;  // tokens a sequence may have
};

class KvPool {
 public:
  static constexpr int64_t kMostTokensOfPage = 4096;
  /// kInvalidArgument for a format, page size, context or number of pages that no cache has.
  static Status check(const KvOptions& options);
  /// Errors: those of check(); kResourceExhausted for what the device cannot give.
  static Result<KvPool> create(Device& device, const std::vector<KvShape>& shapes, const KvOptions& options);
  const KvPages& pages() const { return view_; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t total_pages() const { return total_; }
  int64_t page_size() const { return view_.page_size; }
  /// A page, or kResourceExhausted with how many there are.
  Result<int32_t> take();
  void give_back(const std::vector<int32_t>& pages);
  /// As after create(): whoever held pages holds them no more. Allocates nothing.
  void take_back_all();
  int64_t bytes() const { return memory_.bytes(); }
  /// Bytes of one token over all layers, scales included.
  static int64_t token_bytes(const std::vector<KvShape>& shapes, const KvOptions& options);

 private:
  Buffer memory_;
  KvPages view_;
  std::vector<int32_t> free_;
  int64_t total_ = 0;
};

}  // namespace ridge
