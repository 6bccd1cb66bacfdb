#pragma once
// Paged caches on the host, and what the attention operators make of them.

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "cases/device_case.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"

namespace ridge::cases {

/// A paged cache on the host: NaN everywhere but in the keys that a sequence owns, pages shuffled.
struct Cache {
  int64_t kv_heads, page_size, head_dim, max_pages = 1;
  std::vector<int64_t> lengths;
  std::vector<int32_t> table;
  std::vector<float> k, v;

  Cache(std::vector<int64_t> lengths_in, int64_t kv_heads_in, int64_t head_dim_in, int64_t page_size_in,
        int64_t room = 0)
      : kv_heads(kv_heads_in),
        page_size(page_size_in),
        head_dim(head_dim_in),
        lengths(std::move(lengths_in)) {
    int64_t pages = 1;  // one that nobody owns
    for (const int64_t n : lengths) {
      max_pages = std::max(max_pages, (std::max(n, room) + page_size - 1) / page_size);
      pages += (n + page_size - 1) / page_size;
    }
    std::vector<int32_t> free(static_cast<size_t>(pages));
    for (int64_t p = 0; p < pages; ++p) free[p] = static_cast<int32_t>(p);
    Random random(11);
    for (int64_t p = pages - 1; p > 0; --p) std::swap(free[p], free[random.below(p + 1)]);
    table.assign(lengths.size() * static_cast<size_t>(max_pages), kPoisonIndex);
    k.assign(static_cast<size_t>(pages * kv_heads * page_size * head_dim), NAN);
    v.assign(k.size(), INFINITY);
    for (size_t s = 0; s < lengths.size(); ++s)
      for (int64_t i = 0; i * page_size < lengths[s]; ++i)
        table[s * static_cast<size_t>(max_pages) + static_cast<size_t>(i)] = free.back(), free.pop_back();
    for (size_t s = 0; s < lengths.size(); ++s)
      for (int64_t key = 0; key < lengths[s]; ++key) set(s, key, 0, 1);
  }
  size_t at(size_t s, int64_t key, int64_t head) const {
    const int64_t page = table[s * static_cast<size_t>(max_pages) + static_cast<size_t>(key / page_size)];
    return static_cast<size_t>(((page * kv_heads + head) * page_size + key % page_size) * head_dim);
  }
  void set(size_t s, int64_t key, float keys, float values) {
    for (int64_t h = 0; h < kv_heads; ++h) {
      std::fill_n(k.begin() + static_cast<int64_t>(at(s, key, h)), head_dim, keys);
      std::fill_n(v.begin() + static_cast<int64_t>(at(s, key, h)), head_dim, values);
    }
  }
  void randomize(uint64_t seed) {
    Random random(seed);
    for (size_t s = 0; s < lengths.size(); ++s)
      for (int64_t key = 0; key < lengths[s]; ++key)
        for (int64_t h = 0; h < kv_heads; ++h)
          for (int64_t d = 0; d < head_dim; ++d)
            k[at(s, key, h) + d] = random.normal(), v[at(s, key, h) + d] = random.normal();
  }
  /// mark(n, j): V is n in row j and 0 in the others.
  void mark(size_t s, int64_t key) {
    for (int64_t i = 0; i < lengths[s]; ++i) set(s, i, 0, i == key ? static_cast<float>(lengths[s]) : 0);
  }
  void put(Bench& bench, DType dtype, PagedAttention* a) const {
    const int64_t pages = static_cast<int64_t>(k.size()) / (kv_heads * page_size * head_dim);
    a->k_pages = bench.upload_as(dtype, k, {pages, kv_heads, page_size, head_dim});
    a->v_pages = bench.upload_as(dtype, v, {pages, kv_heads, page_size, head_dim});
    a->page_table = bench.upload(table, {static_cast<int64_t>(lengths.size()), max_pages});
    a->kv_length = bench.upload(lengths, {static_cast<int64_t>(lengths.size())});
  }
};

struct Answer {
  std::vector<float> o, lse;
};

/// Decode with q 0 (or given).
inline Answer decode(Bench& bench, const Cache& cache, int64_t ratio, DType dtype,
                     const std::vector<float>* q = nullptr, int64_t window = 0) {
  const auto sequences = static_cast<int64_t>(cache.lengths.size());
  const int64_t heads = cache.kv_heads * ratio;
  AttentionDecodeArgs a;
  a.window = window;
  cache.put(bench, dtype, &a);
  a.q = bench.upload(q ? *q : std::vector<float>(static_cast<size_t>(sequences * heads * cache.head_dim), 0),
                     {sequences, heads, cache.head_dim});
  a.o = bench.output(kF32, a.q.shape), a.lse = bench.output(kF32, {sequences, heads});
  bench.run([&](CudaStream& s) { return attention_decode(s, a); });
  return {bench.floats(a.o), bench.floats(a.lse)};
}

inline Answer prefill(Bench& bench, const Cache& cache, int64_t ratio, DType dtype,
                      const std::vector<int64_t>& starts, int64_t tokens,
                      const std::vector<float>* q = nullptr, int64_t window = 0) {
  const int64_t heads = cache.kv_heads * ratio;
  AttentionPrefillArgs a;
  a.window = window;
  cache.put(bench, dtype, &a);
  a.q = bench.upload(q ? *q : std::vector<float>(static_cast<size_t>(tokens * heads * cache.head_dim), 0),
                     {tokens, heads, cache.head_dim});
  a.o = bench.output(kF32, a.q.shape), a.lse = bench.output(kF32, {tokens, heads});
  a.query_start = bench.upload(starts, {static_cast<int64_t>(starts.size())});
  bench.run([&](CudaStream& s) { return attention_prefill(s, a); });
  return {bench.floats(a.o), bench.floats(a.lse)};
}

inline constexpr DType kStored[] = {kF32, kF16, kBF16};

inline void expect_all(Bench& bench, const std::vector<float>& got, size_t first, size_t count, double want,
                       double bound, const std::string& what) {
  for (size_t i = first; i < first + count; ++i) bench.expect_near(got[i], want, bound, what);
}

}  // namespace ridge::cases
