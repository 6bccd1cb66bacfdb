#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "cases/paged_cache.h"
#include "ops/kv_write/kv_write.h"

namespace ridge::cases {

namespace {

void k17_every_ratio_head_and_page(Bench& bench) {
  const int64_t ratios[] = {1, 2, 3, 5, 7, 8, 12, 16, 20, 71}, dims[] = {40, 64, 80, 96, 128, 192, 256, 512},
                pages[] = {1, 16, 100, 256};
  for (const DType dtype : {kF32, kBF16})
    for (const int64_t ratio : ratios)
      for (const int64_t d : dims)
        for (const int64_t page : pages) {
          if (d != 64 && d != 128 && ratio != 3 && ratio != 71) continue;
          const int64_t n = 1024, key = ratio % 2 == 0 ? (n - 1) / page * page : std::min(page, n) - 1;
          Cache cache({n}, 1, d, page);
          cache.mark(0, key);
          bench.free_memory();
          const Answer got = decode(bench, cache, ratio, dtype);
          expect_all(bench, got.o, 0, got.o.size(), 1, 1e-5,
                     text(dtype_name(dtype), " ratio ", ratio, " head_dim ", d, " page ", page));
          if (bench.failures() > 0) return;
        }
}

void k18_empty_sequences_in_a_graph(Bench& bench) {
  for (const DType dtype : kStored) {
    const Cache cache({5, 0, 0, 1, 0, 0, 0, 0}, 2, 64, 16);
    AttentionDecodeArgs a;
    cache.put(bench, dtype, &a);
    a.q = bench.upload(std::vector<float>(8 * 4 * 64, 0), {8, 4, 64});
    a.o = bench.output(kF32, a.q.shape), a.lse = bench.output(kF32, {8, 4});
    bench.replay([&](CudaStream& s) { return attention_decode(s, a); }, 3);
    const std::vector<float> o = bench.floats(a.o), lse = bench.floats(a.lse);
    for (size_t s = 0; s < 8; ++s) {
      const auto n = static_cast<double>(cache.lengths[s]);
      expect_all(bench, o, s * 256, 256, n > 0 ? 1 : 0, 1e-6, text("o of ", s));
      expect_all(bench, lse, s * 4, 4, std::log(n), 1e-6, text("lse of ", s));
    }
  }
}

void k19_pages_beyond_31_bits(Bench& bench) {
  const int64_t pages = 7769, page_size = 480, d = 576;
  AttentionDecodeArgs a;
  a.k_pages = Tensor(bench.memory(pages * page_size * d * 2), kBF16, {pages, 1, page_size, d});
  a.v_pages = a.k_pages;
  for (const int64_t key : {int64_t{3}, page_size + 470}) {
    const int64_t bytes = page_size * d * 2;
    for (const int64_t page : {pages - 2, pages - 1})
      bench.must(
          cuda_status(cudaMemset(a.k_pages.as<bf16>() + page * page_size * d, 0, static_cast<size_t>(bytes)),
                      "cudaMemset"));
    // q is 0, so K may be V.
    const std::vector<bf16> marked(static_cast<size_t>(d), to_bf16(960));
    bench.must(bench.device().upload(a.k_pages.as<bf16>() + ((pages - 2) * page_size + key) * d,
                                     marked.data(), d * 2));
    a.page_table = bench.upload(
        std::vector<int32_t>{static_cast<int32_t>(pages - 2), static_cast<int32_t>(pages - 1)}, {1, 2});
    a.kv_length = bench.upload(std::vector<int64_t>{960}, {1});
    a.q = bench.upload(std::vector<float>(static_cast<size_t>(d), 0), {1, 1, d});
    a.o = bench.output(kF32, a.q.shape);
    bench.run([&](CudaStream& s) { return attention_decode(s, a); });
    expect_all(bench, bench.floats(a.o), 0, static_cast<size_t>(d), 1, 1e-5, text("key ", key));
  }
}

/// Ragged lengths from none to 2^20 over one pool: V is 0 but for the last key of all, whose weight is 1 / n.
void lengths_from_0_to_a_million(Bench& bench) {
  const int64_t most = int64_t{1} << 20, d = 64;
  const std::vector<int64_t> lengths = {0, 1, 777, most - 1, most};
  const auto sequences = static_cast<int64_t>(lengths.size());
  for (const int64_t page_size : {16, 256}) {
    bench.free_memory();
    const int64_t pages = most / page_size;
    AttentionDecodeArgs a;
    for (Tensor* t : {&a.k_pages, &a.v_pages}) {
      *t = Tensor(bench.memory(most * d * 2), kBF16, {pages, 1, page_size, d});
      bench.must(cuda_status(cudaMemset(t->data, 0, static_cast<size_t>(most * d * 2)), "cudaMemset"));
    }
    const std::vector<bf16> last(static_cast<size_t>(d), to_bf16(static_cast<float>(most)));
    bench.must(bench.device().upload(a.v_pages.as<bf16>() + (most - 1) * d, last.data(), d * 2));
    std::vector<int32_t> table;
    for (int64_t i = 0; i < sequences * pages; ++i) table.push_back(static_cast<int32_t>(i % pages));
    a.page_table = bench.upload(table, {sequences, pages});
    a.kv_length = bench.upload(lengths, {sequences});
    a.q = bench.upload(std::vector<float>(static_cast<size_t>(sequences * 2 * d), 0), {sequences, 2, d});
    a.o = bench.output(kF32, a.q.shape), a.lse = bench.output(kF32, {sequences, 2});
    bench.run([&](CudaStream& s) { return attention_decode(s, a); });
    const std::vector<float> o = bench.floats(a.o), lse = bench.floats(a.lse);
    for (size_t s = 0; s < lengths.size(); ++s) {
      expect_all(bench, o, s * 2 * d, 2 * d, lengths[s] == most ? 1 : 0, 1e-5,
                 text("o of ", lengths[s], " keys"));
      expect_all(bench, lse, s * 2, 2, std::log(static_cast<double>(lengths[s])), 2e-5,
                 text("lse of ", lengths[s], " keys"));
    }
  }
}

void k20_no_key_is_lost_between_splits(Bench& bench) {
  for (const DType dtype : kStored)
    for (const int64_t key : {0, 255, 256, 4095, 4096, 4351, 8191}) {
      bench.free_memory();
      Cache cache({8192}, 1, 128, 256);
      cache.mark(0, key);
      const Answer got = decode(bench, cache, 4, dtype);
      expect_all(bench, got.o, 0, got.o.size(), 1, 1e-4, text(dtype_name(dtype), " key ", key));
      if (bench.failures() > 0) return;
    }
}

void k21_the_declared_maximum_changes_no_bit(Bench& bench) {
  for (const DType dtype : kStored) {
    std::vector<float> first, q(4 * 64);
    Random random(21);
    for (float& x : q) x = random.normal() / 8;
    for (const int64_t room : {1024, 131072}) {
      Cache cache({777}, 1, 64, 16, room);
      cache.randomize(22);
      const Answer got = decode(bench, cache, 4, dtype, &q);
      if (first.empty()) first = got.o;
      bench.expect(std::memcmp(first.data(), got.o.data(), first.size() * 4) == 0,
                   text(dtype_name(dtype), ": room for ", room, " keys changes bits"));
    }
  }
}

/// Every pair of page types: K = 0, V = 0.3, written a token at a time over the edges of pages.
void k22_quantized_pages_over_300_steps(Bench& bench) {
  const DType types[] = {kF32, kF16, kBF16, kI8};
  const double tolerance[] = {1e-6, 0.3 * 0x1p-11 + 1e-6, 0.3 * 0x1p-8 + 1e-6, 1e-6};
  for (const DType k_type : types)
    for (size_t v = 0; v < 4; ++v) {
      bench.free_memory();
      const int64_t d = 128, page = 16, pages = 20;
      KvWriteArgs w;
      w.k = bench.upload(std::vector<float>(static_cast<size_t>(d), 0), {1, 1, d});
      w.v = bench.upload(std::vector<float>(static_cast<size_t>(d), 0.3f), {1, 1, d});
      w.k_pages = bench.output(k_type, {pages, 1, page, d}),
      w.v_pages = bench.output(types[v], {pages, 1, page, d});
      if (k_type == kI8) w.k_scale = bench.output(kF32, {pages, 1, page});
      if (types[v] == kI8) w.v_scale = bench.output(kF32, {pages, 1, page});
      AttentionDecodeArgs a;
      a.k_pages = w.k_pages, a.v_pages = w.v_pages, a.k_scale = w.k_scale, a.v_scale = w.v_scale;
      std::vector<int32_t> table(static_cast<size_t>(pages));
      for (int64_t p = 0; p < pages; ++p) table[p] = static_cast<int32_t>((p * 7) % pages);
      a.page_table = bench.upload(table, {1, pages});
      a.q = bench.upload(std::vector<float>(static_cast<size_t>(d), 1), {1, 1, d}),
      a.o = bench.output(kF32, {1, 1, d});
      for (int64_t n = 1; n <= 300; ++n) {
        w.slots = bench.upload(std::vector<int64_t>{table[(n - 1) / page] * page + (n - 1) % page}, {1});
        a.kv_length = bench.upload(std::vector<int64_t>{n}, {1});
        bench.run([&](CudaStream& s) -> Status {
          RIDGE_TRY(kv_write(s, w));
          return attention_decode(s, a);
        });
        if (n % 50 != 0 && n != 17) continue;
        expect_all(bench, bench.floats(a.o), 0, static_cast<size_t>(d), 0.3, tolerance[v],
                   text(dtype_name(k_type), " x ", dtype_name(types[v]), " after ", n));
      }
      if (bench.failures() > 0) return;
    }
}

void nan_stays_in_its_sequence(Bench& bench) {
  for (const DType dtype : kStored) {
    Cache cache({70, 70, 70}, 1, 64, 16);
    cache.set(1, 69, NAN, NAN);
    const Answer got = decode(bench, cache, 2, dtype);
    for (size_t s = 0; s < 3; ++s)
      for (size_t i = 0; i < 128; ++i)
        bench.expect(std::isnan(got.o[s * 128 + i]) == (s == 1), text(dtype_name(dtype), ": sequence ", s));
    // A later token's NaN is not seen by the tokens before it.
    const Answer rows = prefill(bench, cache, 1, dtype, {0, 0, 70, 70}, 70);
    for (size_t row = 0; row < 70; ++row)
      bench.expect(std::isnan(rows.o[row * 64]) == (row == 69),
                   text(dtype_name(dtype), ": prefill row ", row));
  }
}

void a_page_outside_of_the_cache_is_nan(Bench& bench) {
  for (const bool beyond : {false, true}) {
    Cache cache({33, 33}, 1, 64, 16);
    if (beyond) cache.lengths[1] = 1000;  // the table has room for 48
    const Cache shape = cache;
    cache.table[static_cast<size_t>(cache.max_pages) + 1] =
        beyond ? cache.table[static_cast<size_t>(cache.max_pages) + 1] : 99;
    bench.expect_fault(
        beyond ? "attention_decode: kv_length[1] is 1000, needs 0 to 48: what page_table has room for"
               : "attention_decode: page_table[1, 1] is 99, needs 0 to 6: the pages of the cache");
    const Answer got = decode(bench, cache, 1, kF32);
    for (size_t i = 0; i < 128; ++i)
      bench.expect(std::isnan(got.o[i]) == (i >= 64),
                   beyond ? "a length beyond the table" : "a page id of 99");
    for (const DType dtype : {kF32, kBF16}) {
      bench.expect_fault(
          beyond ? "attention_prefill: kv_length[1] is 1000, needs 0 to 48: what page_table has room for"
                 : "attention_prefill: page_table[1, 1] is 99, needs 0 to 6: the pages of the cache");
      const Answer rows = prefill(bench, cache, 1, dtype, {0, 33, 66}, 66);
      for (size_t i = 0; i < 66; ++i) {
        const bool lost = std::isnan(rows.o[i * 64]);
        if (i < 33 || i == 65)
          bench.expect(lost == (i == 65), text(dtype_name(dtype), ": row ", i, " of the prompt"));
      }
    }
  }
}

}  // namespace

std::vector<DeviceCase> attention_cases() {
  return {{"K17", k17_every_ratio_head_and_page, kLarge},
          {"K18", k18_empty_sequences_in_a_graph},
          {"K19", k19_pages_beyond_31_bits, kLarge},
          {"lengths_from_0_to_a_million", lengths_from_0_to_a_million, kLarge},
          {"K20", k20_no_key_is_lost_between_splits, kLarge},
          {"K21", k21_the_declared_maximum_changes_no_bit, kLarge},
          {"K22", k22_quantized_pages_over_300_steps, kLarge},
          {"attention_nan_stays_in_its_sequence", nan_stays_in_its_sequence},
          {"attention_page_outside_of_the_cache_is_nan", a_page_outside_of_the_cache_is_nan}};
}

}  // namespace ridge::cases
