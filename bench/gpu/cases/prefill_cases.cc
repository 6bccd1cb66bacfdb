#include <array>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "cases/paged_cache.h"
#include "ops/paged_attention.h"

namespace ridge::cases {

namespace {

void k13_tails_of_pages_are_not_seen(Bench& bench) {
  // Of 140 KV heads attention_flash has blocks of 128 rows, of 2 of 64.
  for (const int64_t kv_heads : {2, 140})
    for (const DType dtype : kStored) {
      const Cache cache({1, 17, 100}, kv_heads, 64, 16);
      const Answer got = prefill(bench, cache, 2, dtype, {0, 1, 2, 3}, 3);
      const auto heads = static_cast<size_t>(kv_heads) * 2;
      for (size_t s = 0; s < 3; ++s) {
        expect_all(bench, got.o, s * heads * 64, heads * 64, 1, 1e-6, text("o of sequence ", s));
        expect_all(bench, got.lse, s * heads, heads, std::log(static_cast<double>(cache.lengths[s])), 1e-6,
                   "lse");
      }
    }
}

void k14_requests_without_keys_or_queries(Bench& bench) {
  // The last has more queries than keys: its first three are before any.
  for (const DType dtype : kStored) {
    const Cache cache({0, 0, 7, 7, 5}, 1, 64, 16);
    const Answer got = prefill(bench, cache, 1, dtype, {0, 0, 5, 5, 8, 16}, 16);
    const double keys[] = {0, 0, 0, 0, 0, 5, 6, 7, 0, 0, 0, 1, 2, 3, 4, 5};
    for (size_t row = 0; row < 16; ++row) {
      expect_all(bench, got.o, row * 64, 64, keys[row] > 0 ? 1 : 0, 1e-6, text("o of row ", row));
      bench.expect_near(got.lse[row], std::log(keys[row]), 1e-6, text("lse of row ", row));
    }
  }
}

/// 8.6 GB of K and V in one page: only the pages' ends are looked at, so the rest stays 0. attention_flash
/// takes a page of a multiple of 8, attention_tiles the other.
void offsets_beyond_31_bits(Bench& bench, int64_t page) {
  bench.free_memory();
  const int64_t keys = 262145, heads = 64, d = 128, elements = page * heads * d;
  AttentionPrefillArgs a;
  for (Tensor* t : {&a.k_pages, &a.v_pages}) {
    *t = Tensor(bench.memory(elements * 2), kBF16, {1, heads, page, d});
    // Contiguous by key: [page, heads, d].
    t->strides = {elements, d, heads * d, 1};
    bench.must(cuda_status(cudaMemset(t->data, 0, static_cast<size_t>(elements) * 2), "cudaMemset"));
  }
  const std::vector<bf16> last(static_cast<size_t>(heads * d), to_bf16(262144));
  bench.must(
      bench.device().upload(a.v_pages.as<bf16>() + (keys - 1) * heads * d, last.data(), heads * d * 2));
  a.page_table = bench.upload(std::vector<int32_t>{0}, {1, 1});
  a.kv_length = bench.upload(std::vector<int64_t>{keys}, {1});
  a.query_start = bench.upload(std::vector<int64_t>{0, 64}, {2});
  a.q = bench.upload(std::vector<float>(static_cast<size_t>(64 * heads * d), 0), {64, heads, d});
  a.o = bench.output(kF32, {64, heads, d});
  bench.run([&](CudaStream& s) { return attention_prefill(s, a); });
  const std::vector<float> got = bench.floats(a.o);
  expect_all(bench, got, 63 * heads * d, heads * d, 1, 0x1p-8, "o of the last query");
  expect_all(bench, got, 62 * heads * d, heads * d, 0, 0, "o of the query before it");
}

void k15_offsets_beyond_31_bits(Bench& bench) {
  for (const int64_t page : {262145, 262152}) offsets_beyond_31_bits(bench, page);
}

/// With 11 KV heads the whole prompt has blocks of 128 rows, its shorter chunks of 64.
void k16_chunks_do_not_change_the_answer(Bench& bench) {
  const int64_t d = 64, ratio = 3;
  for (const auto& [dtype, kv_heads] :
       {std::pair{kF32, int64_t{3}}, {kBF16, int64_t{3}}, {kBF16, int64_t{11}}, {kF16, int64_t{11}}}) {
    const int64_t row = kv_heads * ratio * d;
    Cache whole({300}, kv_heads, d, 16);
    whole.randomize(16);
    std::vector<float> q(static_cast<size_t>(300 * row));
    Random random(17);
    for (float& x : q) x = random.normal() / 8;
    const Answer once = prefill(bench, whole, ratio, dtype, {0, 300}, 300, &q);
    for (const std::vector<int64_t>& chunks :
         {std::vector<int64_t>{1, 299}, {7, 64, 229}, {112, 188}, {256, 44}, {288, 12}}) {
      int64_t past = 0;
      for (const int64_t chunk : chunks) {
        bench.free_memory();
        Cache part = whole;
        part.lengths[0] = past + chunk;
        const std::vector<float> rows(q.begin() + past * row, q.begin() + (past + chunk) * row);
        const Answer got = prefill(bench, part, ratio, dtype, {0, chunk}, chunk, &rows);
        bench.expect(std::memcmp(got.o.data(), once.o.data() + past * row, got.o.size() * 4) == 0,
                     text(dtype_name(dtype), ", ", kv_heads, " KV heads: a chunk of ", chunk, " after ", past,
                          " changes bits"));
        past += chunk;
      }
    }
  }
}

struct PrefillCase {
  std::vector<int64_t> lengths, chunks;  // of each sequence: all keys; the last of them that are queries
  int64_t kv_heads, ratio, head_dim, page;
  DType dtype;
  int64_t window = 0;
  float softcap = 0;
};

/// Some rows of each chunk against the double-precision reference, within the description's bound.
void expect_prefill(Bench& bench, const PrefillCase& c) {
  bench.free_memory();
  Cache cache(c.lengths, c.kv_heads, c.head_dim, c.page);
  cache.randomize(5);
  const int64_t heads = c.kv_heads * c.ratio, sequences = static_cast<int64_t>(c.lengths.size()),
                pages = static_cast<int64_t>(cache.k.size()) / (c.kv_heads * c.page * c.head_dim);
  std::vector<int64_t> starts = {0};
  for (const int64_t chunk : c.chunks) starts.push_back(starts.back() + chunk);
  const int64_t tokens = starts.back();
  std::vector<float> q(static_cast<size_t>(tokens * heads * c.head_dim)), o(q.size()),
      lse(static_cast<size_t>(tokens * heads));
  Random random(6);
  for (float& x : q) x = random.normal();
  AttentionPrefillArgs a;
  cache.put(bench, c.dtype, &a);
  a.q = bench.upload(q, {tokens, heads, c.head_dim});
  a.o = bench.output(kF32, a.q.shape), a.lse = bench.output(kF32, {tokens, heads});
  a.query_start = bench.upload(starts, {sequences + 1});
  a.scale = 1 / std::sqrt(static_cast<float>(c.head_dim)), a.window = c.window, a.softcap = c.softcap;
  bench.run([&](CudaStream& s) { return attention_prefill(s, a); });
  const std::vector<float> got = bench.floats(a.o), got_lse = bench.floats(a.lse);

  PagedAttention host = a;
  host.q = Tensor(q.data(), a.q.shape), host.o = Tensor(o.data(), a.q.shape);
  host.lse = Tensor(lse.data(), a.lse.shape);
  // In the pages' own type, which the bound depends on.
  std::vector<uint16_t> stored[2];
  for (size_t side = 0; side < 2; ++side)
    for (const float x : side == 0 ? cache.k : cache.v)
      stored[side].push_back(c.dtype == kBF16 ? to_bf16(x).bits : to_f16(x).bits);
  host.k_pages = Tensor(stored[0].data(), c.dtype, {pages, c.kv_heads, c.page, c.head_dim});
  host.v_pages = Tensor(stored[1].data(), c.dtype, {pages, c.kv_heads, c.page, c.head_dim});
  host.page_table = Tensor(cache.table.data(), {sequences, cache.max_pages});
  host.kv_length = Tensor(cache.lengths.data(), {sequences});
  AttentionBound bound;
  const std::string what = text(dtype_name(c.dtype), ", ", c.ratio, " x ", c.head_dim, ", page ", c.page,
                                ", window ", c.window, ", softcap ", c.softcap);
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t i = 0; i < c.chunks[s]; i += i < 12 || i + 3 >= c.chunks[s] ? 1 : c.chunks[s] / 5 + 1) {
      const int64_t row = starts[s] + i, position = c.lengths[s] - c.chunks[s] + i;
      for (int64_t head = 0; head<heads; head += heads> 4 ? heads - 1 : 1) {
        attention_reference_row(host, s, row, head, position);
        const auto at = static_cast<size_t>(row * heads + head);
        const auto log_sum = static_cast<double>(lse[at]);
        bench.expect_near(got_lse[at], log_sum, bound.log_sum(host, log_sum, s, row, head, position), what);
        for (int64_t e = 0; e < c.head_dim; ++e) {
          const size_t place = at * static_cast<size_t>(c.head_dim) + static_cast<size_t>(e);
          const auto want = static_cast<double>(o[place]);
          bench.expect_near(got[place], want, bound.output(host, want, s, row, head, position, e), what);
        }
      }
    }
}

void prefill_of_many_shapes(Bench& bench) {
  const PrefillCase cases[] = {
      {{200}, {200}, 1, 1, 64, 16, kBF16},
      {{90}, {90}, 1, 2, 128, 16, kBF16, 3},
      {{129}, {129}, 3, 3, 64, 16, kF16},
      {{300, 70, 9}, {40, 70, 1}, 2, 4, 128, 16, kBF16},
      {{300, 257}, {130, 257}, 2, 8, 128, 8, kBF16},
      {{300}, {170}, 1, 7, 128, 64, kF16, 100},
      {{400, 33}, {64, 33}, 1, 2, 128, 16, kBF16, 17, 30},
      {{150}, {150}, 1, 5, 80, 24, kBF16},
      {{150, 12}, {33, 12}, 2, 2, 32, 16, kBF16},
      {{150}, {100}, 1, 16, 96, 128, kF16, 0, 20},
      {{150}, {90}, 1, 2, 192, 16, kBF16, 40},
      {{260}, {131}, 1, 4, 256, 16, kBF16},
      {{260}, {70}, 1, 3, 256, 32, kF16, 64},
      {{70}, {70}, 1, 71, 64, 16, kBF16},
      // Blocks of 128 rows.
      {{140, 30}, {130, 30}, 40, 2, 128, 16, kBF16},
      {{130}, {130}, 40, 2, 192, 16, kF16, 50},
      {{70}, {65}, 70, 1, 256, 16, kBF16, 0, 20},
  };
  for (const PrefillCase& c : cases) {
    expect_prefill(bench, c);
    if (bench.failures() > 0) return;
  }
}

/// A key that takes nearly all of the weight: of the others little is left, but not nothing.
void weights_far_below_the_largest(Bench& bench) {
  for (const DType dtype : kStored)
    for (const double gap : {11.0, 14.0}) {
      const int64_t n = 512, d = 64;
      Cache cache({n}, 1, d, 16);
      for (int64_t key = 0; key < n; ++key) cache.set(0, key, 0, key == 0 ? 0 : 1);
      cache.k[cache.at(0, 0, 0)] = static_cast<float>(gap);
      std::vector<float> q(static_cast<size_t>(d), 0);
      q[0] = 1;
      const double others = static_cast<double>(n - 1) * std::exp(-gap), want = others / (1 + others);
      const std::string what = text(dtype_name(dtype), ", ", gap, " above");
      const Answer decoded = decode(bench, cache, 1, dtype, &q);
      expect_all(bench, decoded.o, 0, static_cast<size_t>(d), want, want * 0x1p-15, what);
      const Answer got = prefill(bench, cache, 1, dtype, {0, 1}, 1, &q);
      expect_all(bench, got.o, 0, static_cast<size_t>(d), want, want * 0x1p-15, what);
    }
}

/// Neither what no token sees, nor what other tokens alone see, changes a bit of a token's row: values that
/// are no number or very large, after it and before its window. With 40 KV heads blocks have 128 rows.
void values_that_a_token_does_not_see(Bench& bench) {
  const int64_t n = 150, window = 60, odd = 77;
  for (const DType dtype : kStored)
    for (const auto& [d, kv_heads, ratio] : {std::array<int64_t, 3>{64, 1, 4},
                                             {80, 1, 4},
                                             {128, 1, 4},
                                             {256, 1, 4},
                                             {64, 40, 1},
                                             {128, 40, 1}}) {
      bench.free_memory();
      const int64_t heads = kv_heads * ratio;
      Cache cache({n}, kv_heads, d, 16);
      cache.randomize(8);
      std::vector<float> q(static_cast<size_t>(n * heads * d));
      Random random(9);
      for (float& x : q) x = random.normal() / 8;
      const std::vector<float> last(q.end() - heads * d, q.end());
      const Answer clean = prefill(bench, cache, ratio, dtype, {0, n}, n, &q, window);
      const Answer clean_last = decode(bench, cache, ratio, dtype, &last, window);
      const float huge = dtype == kF16 ? 65504.0f : 1e38f;
      for (const float value : {NAN, INFINITY, huge}) {
        Cache spoilt = cache;
        spoilt.v[cache.at(0, odd, 0) + 5] = value;
        const Answer got = prefill(bench, spoilt, ratio, dtype, {0, n}, n, &q, window);
        for (int64_t row = 0; row < n; ++row)
          for (int64_t i = 0; i < heads * d; ++i) {
            const auto at = static_cast<size_t>(row * heads * d + i);
            const bool sees = row >= odd && row < odd + window && i < ratio * d && i % d == 5;
            const bool lost = sees && !std::isfinite(value);
            const bool good = lost   ? (std::isnan(value) ? std::isnan(got.o[at]) : !std::isfinite(got.o[at]))
                              : sees ? std::isfinite(got.o[at])
                                     : got.o[at] == clean.o[at];
            bench.expect(good, text(dtype_name(dtype), ", head_dim ", d, ", ", kv_heads,
                                    " KV heads: prefill row ", row, ", element ", i));
          }
        // The window of the last token begins at key 90, in the midst of 16 keys that are copied together.
        spoilt.v[cache.at(0, 89, 0) + 5] = value;
        const Answer got_last = decode(bench, spoilt, ratio, dtype, &last, window);
        bench.expect(std::memcmp(got_last.o.data(), clean_last.o.data(), got_last.o.size() * 4) == 0,
                     text(dtype_name(dtype), ", head_dim ", d, ": decode"));
      }
      if (bench.failures() > 0) return;
    }
}

}  // namespace

std::vector<DeviceCase> prefill_cases() {
  return {{"K13", k13_tails_of_pages_are_not_seen},
          {"K14", k14_requests_without_keys_or_queries},
          {"K15", k15_offsets_beyond_31_bits, kLarge},
          {"K16", k16_chunks_do_not_change_the_answer, kLarge},
          {"prefill_of_many_shapes", prefill_of_many_shapes, kLarge},
          {"weights_far_below_the_largest", weights_far_below_the_largest},
          {"values_that_a_token_does_not_see", values_that_a_token_does_not_see, kLarge}};
}

}  // namespace ridge::cases
