#pragma once
// A paged cache with shuffled pages whose every slot starts dead: NaN and infinity, or code 127 with a NaN
// scale. Page tables start as 2147480000.

#include <sys/mman.h>

#include <cmath>
#include <memory>

#include "kernels/attention/paged.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/operator_call.h"

namespace ridge::tests {

/// Reserved address space that costs memory only where it is touched; zeros.
inline Buffer reserve(int64_t bytes) {
  void* at = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return {at, bytes, [](void* data, int64_t n) { munmap(data, static_cast<size_t>(n)); }};
}

struct CacheShape {
  int64_t sequences = 1, kv_heads = 1, head_dim = 16, page_size = 16, pages = 8, max_pages = 8;
  DType k_type = kF32, v_type = kF32;
};

class PagedCache {
 public:
  explicit PagedCache(const CacheShape& s) : shape_(s), table_(s.sequences * s.max_pages, 2147480000) {
    const Shape pages = {s.pages, s.kv_heads, s.page_size, s.head_dim},
                rows = {s.pages, s.kv_heads, s.page_size};
    memory_[0] = reserve(*tensor_bytes(s.k_type, pages) + 64),
    memory_[1] = reserve(*tensor_bytes(s.v_type, pages) + 64);
    memory_[2] = reserve(*tensor_bytes(kF32, rows) + 64),
    memory_[3] = reserve(*tensor_bytes(kF32, rows) + 64);
    k_ = Tensor(memory_[0].data(), s.k_type, pages), v_ = Tensor(memory_[1].data(), s.v_type, pages);
    if (s.k_type == kI8) k_scale_ = Tensor(memory_[2].data(), kF32, rows);
    if (s.v_type == kI8) v_scale_ = Tensor(memory_[3].data(), kF32, rows);
    lengths_.assign(static_cast<size_t>(s.sequences), 0);
  }
  /// Makes every slot dead.
  void poison() {
    for (int64_t p = 0; p < shape_.pages; ++p)
      for (int64_t h = 0; h < shape_.kv_heads; ++h)
        for (int64_t o = 0; o < shape_.page_size; ++o) {
          fill(k_, k_scale_, p, h, o, o % 2 ? NAN : INFINITY);
          fill(v_, v_scale_, p, h, o, o % 2 ? INFINITY : NAN);
        }
  }
  /// Gives a sequence `length` tokens on the next free pages, in an order that is not theirs.
  void place(int64_t sequence, int64_t length) {
    lengths_[static_cast<size_t>(sequence)] = length;
    const int64_t need = (length + shape_.page_size - 1) / shape_.page_size;
    for (int64_t i = 0; i < need; ++i)
      table_[static_cast<size_t>(sequence * shape_.max_pages + i)] =
          static_cast<int32_t>(used_ + (need % 2 != 0 || need < 4 ? need - 1 - i : (i + need / 2) % need));
    used_ += need;
    EXPECT_LE(used_, shape_.pages);
  }
  void set_page(int64_t sequence, int64_t i, int32_t page) {
    table_[static_cast<size_t>(sequence * shape_.max_pages + i)] = page;
  }
  void set_length(int64_t sequence, int64_t length) { lengths_[static_cast<size_t>(sequence)] = length; }
  /// All elements of key and value `index` of a sequence, in every kv head.
  void set(int64_t sequence, int64_t index, double key, double value) {
    const int64_t page = table_[static_cast<size_t>(sequence * shape_.max_pages + index / shape_.page_size)];
    for (int64_t h = 0; h < shape_.kv_heads; ++h) {
      fill(k_, k_scale_, page, h, index % shape_.page_size, key);
      fill(v_, v_scale_, page, h, index % shape_.page_size, value);
    }
  }
  /// One element of a value of f32, in every kv head.
  void set_value(int64_t sequence, int64_t index, int64_t element, double value) {
    const int64_t page = table_[static_cast<size_t>(sequence * shape_.max_pages + index / shape_.page_size)];
    for (int64_t h = 0; h < shape_.kv_heads; ++h) v_.set(value, page, h, index % shape_.page_size, element);
  }
  /// Random keys and values for the whole of a sequence.
  void set_random(int64_t sequence, uint64_t seed) {
    for (int64_t i = 0; i < lengths_[static_cast<size_t>(sequence)]; ++i) {
      const int64_t page = table_[static_cast<size_t>(sequence * shape_.max_pages + i / shape_.page_size)];
      for (int64_t h = 0; h < shape_.kv_heads; ++h) {
        Random random(seed + static_cast<uint64_t>(i * shape_.kv_heads + h));
        const int64_t o = i % shape_.page_size;
        for (int64_t d = 0; d < shape_.head_dim; ++d) {
          k_.set(k_scale_ ? static_cast<double>(random.below(255) - 127) : random.normal(), page, h, o, d);
          v_.set(v_scale_ ? static_cast<double>(random.below(255) - 127) : random.normal(), page, h, o, d);
        }
        if (k_scale_) k_scale_.set(random.uniform(0.005f, 0.02f), page, h, o);
        if (v_scale_) v_scale_.set(random.uniform(0.005f, 0.02f), page, h, o);
      }
    }
  }
  /// Of key `index` of a sequence, as kv_write takes it.
  int64_t slot(int64_t sequence, int64_t index) const {
    const int64_t page = table_[static_cast<size_t>(sequence * shape_.max_pages + index / shape_.page_size)];
    return page * shape_.page_size + index % shape_.page_size;
  }
  void attach(PagedAttention* a) {
    a->k_pages = k_, a->v_pages = v_, a->k_scale = k_scale_, a->v_scale = v_scale_;
    a->page_table = Tensor(table_.data(), {shape_.sequences, shape_.max_pages});
    a->kv_length = Tensor(lengths_.data(), {shape_.sequences});
  }

 private:
  void fill(const Tensor& pages, const Tensor& scale, int64_t page, int64_t head, int64_t offset,
            double value) {
    if (scale) scale.set(std::isfinite(value) ? std::fabs(value) / 127 : NAN, page, head, offset);
    const double code = !std::isfinite(value) || value > 0 ? 127 : value < 0 ? -127 : 0;
    for (int64_t d = 0; d < shape_.head_dim; ++d) pages.set(scale ? code : value, page, head, offset, d);
  }
  CacheShape shape_;
  Buffer memory_[4];
  Tensor k_, v_, k_scale_, v_scale_;
  std::vector<int32_t> table_;
  std::vector<int64_t> lengths_;
  int64_t used_ = 0;
};

/// Rows of o, q and lse; o and lse start as NaN.
struct Rows {
  int64_t rows, heads, head_dim;
  std::vector<float> q, o, lse;
  Rows(int64_t rows_in, int64_t heads_in, int64_t head_dim_in)
      : rows(rows_in),
        heads(heads_in),
        head_dim(head_dim_in),
        q(static_cast<size_t>(rows * heads * head_dim), 0.0f),
        o(q.size(), NAN),
        lse(static_cast<size_t>(rows * heads), NAN) {}
  void randomize(uint64_t seed) {
    Random random(seed);
    for (float& x : q) x = random.normal();
  }
  void attach(PagedAttention* a) {
    a->q = Tensor(q.data(), {rows, heads, head_dim}), a->o = Tensor(o.data(), {rows, heads, head_dim});
    a->lse = Tensor(lse.data(), {rows, heads});
    a->scale = 1 / std::sqrt(static_cast<float>(head_dim));
  }
  /// Rows [first, first + count), to be passed on their own.
  void attach(PagedAttention* a, int64_t first, int64_t count) {
    attach(a);
    a->q = a->q.slice(first, count), a->o = a->o.slice(first, count), a->lse = a->lse.slice(first, count);
  }
};

inline Status prefill(Cpu& cpu, PagedCache& cache, Rows& rows, std::vector<int64_t> query_start) {
  AttentionPrefillArgs a;
  cache.attach(&a), rows.attach(&a);
  a.query_start = Tensor(query_start.data(), {static_cast<int64_t>(query_start.size())});
  return cpu.call(a);
}
inline Status decode(Cpu& cpu, PagedCache& cache, Rows& rows) {
  AttentionDecodeArgs a;
  cache.attach(&a), rows.attach(&a);
  return cpu.call(a);
}

inline const std::vector<DType>& kv_types() {
  static const std::vector<DType> all = {kF32, kF16, kBF16, kI8};
  return all;
}

}  // namespace ridge::tests
