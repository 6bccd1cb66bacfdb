// What must not change a bit of attention: chunking, batch, threads, table width, page placement; and offsets
// beyond 32 bits.

#include "account/cost.h"
#include "ops/paged_cache.h"
#include "sanitized.h"

namespace ridge {
namespace {

using namespace tests;

constexpr int64_t kPrompt = kSanitized ? 140 : 300;

/// o of a prompt computed chunk by chunk.
std::vector<float> by_chunks(Cpu& cpu, PagedCache& cache, const std::vector<int64_t>& chunks,
                             bool single_by_decode) {
  Rows rows(kPrompt, 6, 64);
  rows.randomize(11);
  int64_t done = 0;
  for (const int64_t chunk : chunks) {
    done += chunk;
    cache.set_length(0, done);
    Status s;
    if (single_by_decode && chunk == 1) {
      AttentionDecodeArgs a;
      cache.attach(&a), rows.attach(&a, done - 1, 1);
      s = cpu.call(a);
    } else {
      AttentionPrefillArgs a;
      cache.attach(&a), rows.attach(&a, done - chunk, chunk);
      std::vector<int64_t> query_start = {0, chunk};
      a.query_start = Tensor(query_start.data(), {2});
      s = cpu.call(a);
    }
    EXPECT_TRUE(s.ok()) << s.message();
  }
  return rows.o;
}

TEST(Attention, K16_chunks_prefix_hits_and_decode_steps_give_the_same_bits) {
  for (const Isa isa : isas())
    for (const DType type : kv_types()) {
      if (kSanitized && type != kF16 && type != kI8) continue;
      PagedCache cache({1, 2, 64, 16, 19, 19, type, type});
      cache.poison();
      cache.place(0, kPrompt);
      cache.set_random(0, 17);
      Cpu cpu(isa);
      const auto whole = by_chunks(cpu, cache, {kPrompt}, false);
      EXPECT_EQ(by_chunks(cpu, cache, {1, kPrompt - 1}, false), whole);
      EXPECT_EQ(by_chunks(cpu, cache, {7, 64, kPrompt - 71}, false), whole);
      const std::vector<int64_t> ones(kPrompt, 1);
      EXPECT_EQ(by_chunks(cpu, cache, ones, false), whole);
      EXPECT_EQ(by_chunks(cpu, cache, ones, true), whole);
      // A hit on the first 112, 256 or 288 tokens (of 300) leaves the rest as one chunk.
      for (const int64_t hit : {int64_t{112}, kPrompt - 44, kPrompt - 12})
        EXPECT_EQ(by_chunks(cpu, cache, {hit, kPrompt - hit}, false), whole);
    }
}

TEST(AttentionDecode, K20_finds_every_key_of_a_long_sequence_in_large_pages) {
  constexpr int64_t n = 8192;
  for (const DType type : {kF32, kF16, kBF16, kI8})
    for (const int64_t page_size : {256, 255, 1000}) {
      if (kSanitized && (type != kF16 || page_size == 1000)) continue;
      const int64_t pages = (n + page_size - 1) / page_size;
      PagedCache cache({1, 1, 128, page_size, pages, pages, type, type});
      cache.place(0, n);
      for (const Isa isa : isas()) {
        Cpu cpu(isa);
        for (const int64_t key : {0, 255, 256, 4095, 4096, 4351, 8191}) {
          cache.set(0, key, 0, n);
          Rows rows(1, 4, 128);
          ASSERT_TRUE(decode(cpu, cache, rows).ok());
          for (const float x : rows.o)
            ASSERT_NEAR(x, 1.0f, type == kI8 ? 1e-6 : 0)  // 127 times a rounded 8192 / 127
                << key << " " << isa_name(isa) << " " << dtype_name(type) << " pages of " << page_size;
          EXPECT_NEAR(rows.lse[0], std::log(8192.0), 1e-6);
          cache.set(0, key, 0, 0);
        }
      }
    }
}

/// o and lse of a sequence of 777 tokens in a batch; `at` is its place.
std::vector<float> of_777(Cpu& cpu, const std::vector<int64_t>& lengths, int64_t at, int64_t max_pages) {
  int64_t pages = 0;
  for (const int64_t n : lengths) pages += (n + 15) / 16;
  PagedCache cache({static_cast<int64_t>(lengths.size()), 2, 64, 16, pages, max_pages, kBF16, kBF16});
  for (size_t s = 0; s < lengths.size(); ++s) cache.place(static_cast<int64_t>(s), lengths[s]);
  cache.set_random(at, 99);
  Rows rows(static_cast<int64_t>(lengths.size()), 6, 64), mine(1, 6, 64);
  mine.randomize(4);
  std::copy(mine.q.begin(), mine.q.end(), rows.q.begin() + at * 6 * 64);
  const Status s = decode(cpu, cache, rows);
  EXPECT_TRUE(s.ok()) << s.message();
  std::vector<float> out(rows.o.begin() + at * 6 * 64, rows.o.begin() + (at + 1) * 6 * 64);
  out.insert(out.end(), rows.lse.begin() + at * 6, rows.lse.begin() + (at + 1) * 6);
  return out;
}

TEST(AttentionDecode, K21_mates_and_the_declared_maximum_change_no_bit) {
  for (const Isa isa : isas()) {
    Cpu cpu(isa);
    const auto alone = of_777(cpu, {777}, 0, 64);
    for (const float x : alone) EXPECT_TRUE(std::isfinite(x));
    std::vector<int64_t> many(44, 30);
    many[2] = 777;
    EXPECT_EQ(of_777(cpu, many, 2, 64), alone) << isa_name(isa);
    many.assign(100, 30);  // so many that splits are not items of their own
    many[2] = 777;
    EXPECT_EQ(of_777(cpu, many, 2, 64), alone) << isa_name(isa);
    EXPECT_EQ(of_777(cpu, {777, 100000}, 0, 6250), alone) << isa_name(isa);
    EXPECT_EQ(of_777(cpu, {777}, 0, 131072 / 16), alone) << isa_name(isa);
  }
}

TEST(Attention, K46_threads_change_no_bit) {
  for (const Isa isa : isas()) {
    std::vector<float> first_prefill, first_decode;
    for (const int threads : {1, 2, 3, 7}) {
      if (kSanitized && (threads == 2 || threads == 7)) continue;
      Cpu cpu(isa, threads);
      PagedCache cache({3, 2, 80, 16, 160, 80});
      // Three splits of 512 keys, less than one, and two.
      const std::vector<int64_t> lengths = {kSanitized ? 1030 : 1100, 3, kSanitized ? 520 : 600};
      for (int64_t s = 0; s < 3; ++s) cache.place(s, lengths[static_cast<size_t>(s)]), cache.set_random(s, 7);
      Rows rows(150, 6, 80), ones(3, 6, 80);
      rows.randomize(1), ones.randomize(2);
      ASSERT_TRUE(prefill(cpu, cache, rows, {0, 70, 73, 150}).ok());
      ASSERT_TRUE(decode(cpu, cache, ones).ok());
      if (threads == 1) first_prefill = rows.o, first_decode = ones.o;
      EXPECT_EQ(rows.o, first_prefill) << threads;
      EXPECT_EQ(ones.o, first_decode) << threads;
    }
  }
}

TEST(AttentionPrefill, K15_reads_keys_whose_rows_start_at_element_2_31) {
  // Token-major bf16, 64 kv heads of 128: the last key's row starts at element 262144 * 8192 = 2^31. A view
  // of heads 0, 21, 42 and 63, and the last 4 queries of 64, whose last key must count for the last query and
  // for no other.
  constexpr int64_t kKeys = 262145, kAllHeads = 64, kHeads = 4, kDim = 128, kQueries = 4;
  const int64_t bytes = kKeys * kAllHeads * kDim * 2 + 64;
  const Buffer k = reserve(bytes), v = reserve(bytes);
  AttentionPrefillArgs a;
  for (Tensor* pages : {&a.k_pages, &a.v_pages}) {
    *pages = Tensor(pages == &a.k_pages ? k.data() : v.data(), kBF16, {1, kHeads, kKeys, kDim});
    pages->strides = {kKeys * kAllHeads * kDim, 21 * kDim, kAllHeads * kDim, 1};
  }
  ASSERT_EQ(a.v_pages.offset(0, 0, kKeys - 1, 0), int64_t{1} << 31);
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t d = 0; d < kDim; ++d) a.v_pages.set(0x1p18, 0, h, kKeys - 1, d);
  std::vector<int32_t> table = {0};
  std::vector<int64_t> length = {kKeys}, query_start = {0, kQueries};
  a.page_table = Tensor(table.data(), {1, 1}), a.kv_length = Tensor(length.data(), {1});
  a.query_start = Tensor(query_start.data(), {2});
  Rows rows(kQueries, kHeads, kDim);
  rows.attach(&a);
  Cpu cpu;
  const Status s = cpu.call(a);
  ASSERT_TRUE(s.ok()) << s.message();
  for (int64_t query = 0; query < kQueries; ++query)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t d = 0; d < kDim; ++d)
        ASSERT_NEAR(a.o.f64(query, h, d), query + 1 == kQueries ? 0x1p18 / 262145 : 0, 1e-6)
            << query << " " << h;
}

TEST(AttentionDecode, K19_reads_pages_beyond_element_2_31) {
  constexpr int64_t kPages = 7769, kPage = 480, kDim = 576;
  const int64_t bytes = kPages * kPage * kDim * 2 + 64;
  const Buffer k = reserve(bytes), v = reserve(bytes);
  AttentionDecodeArgs a;
  a.k_pages = Tensor(k.data(), kBF16, {kPages, 1, kPage, kDim}),
  a.v_pages = Tensor(v.data(), kBF16, {kPages, 1, kPage, kDim});
  ASSERT_GT(7768 * a.v_pages.stride(0), int64_t{1} << 31);
  std::vector<int32_t> table = {7767, 7768};
  std::vector<int64_t> length = {512};
  a.page_table = Tensor(table.data(), {1, 2}), a.kv_length = Tensor(length.data(), {1});
  Cpu cpu;
  for (const int64_t key : {0, 479, 480, 511}) {
    const auto mark = [&](double value) {
      for (int64_t d = 0; d < kDim; ++d)
        a.v_pages.set(value, table[static_cast<size_t>(key / kPage)], 0, key % kPage, d);
    };
    mark(512);
    Rows rows(1, 16, kDim);
    rows.attach(&a);
    ASSERT_TRUE(cpu.call(a).ok());
    for (const float x : rows.o) ASSERT_EQ(x, 1.0f) << key;
    mark(0);
  }
}

TEST(AttentionAccount, A5_A6_A7_count_real_lengths_kv_heads_and_the_caches_width) {
  std::vector<bf16> one(1);
  const auto pages = [&](DType type) { return Tensor(one.data(), type, {256, 8, 16, 128}); };
  std::vector<float> x(1);
  std::vector<int32_t> table(4 * 64);
  std::vector<int64_t> length = {17, 1, 1024, 0};
  AttentionDecodeArgs a;
  a.q = a.o = Tensor(x.data(), {4, 32, 128});
  a.k_pages = a.v_pages = pages(kBF16);
  a.page_table = Tensor(table.data(), {4, 64}), a.kv_length = Tensor(length.data(), {4});
  for (const int64_t n : length) {
    a.pairs.value += n > 0 ? causal_pairs(n - 1, 1) : 0;
    a.keys.value += n > 0 ? causal_keys(n - 1, 1) : 0;
  }
  Cpu cpu;
  const auto kv = static_cast<size_t>(DataClass::kKv), f32 = static_cast<size_t>(Engine::kF32);
  EXPECT_EQ(cpu.cost(a).read_bytes[kv], 4268032);  // A6
  a.q = a.o = Tensor(x.data(), {4, 64, 128}), a.pairs = int64_t{1};
  EXPECT_EQ(cpu.cost(a).flops[f32], 32768);  // A5
  // A7 with a cache of one byte, scales aside: four drafts after 1,000.
  AttentionPrefillArgs b;
  std::vector<int64_t> four = {1004}, query_start = {0, 4};
  b.q = b.o = Tensor(x.data(), {4, 32, 128});
  b.k_pages = b.v_pages = pages(kI8);
  b.k_scale = b.v_scale = Tensor(x.data(), {256, 8, 16});
  b.page_table = Tensor(table.data(), {1, 64}), b.kv_length = Tensor(four.data(), {1});
  b.query_start = Tensor(query_start.data(), {2});
  b.pairs = causal_pairs(1000, 4), b.keys = causal_keys(1000, 4);
  EXPECT_EQ(b.pairs.get(), 4010);
  const Cost cost = cpu.cost(b);
  EXPECT_EQ(cost.read_bytes[kv], 2056192);
  EXPECT_EQ(cost.read_bytes[static_cast<size_t>(DataClass::kScales)], 2 * 1004 * 8 * 4);
  EXPECT_EQ(cost.flops[f32], 4 * 4010 * 32 * 128);
}

TEST(AttentionAccount, A2_A3_count_causal_and_windowed_pairs) {
  EXPECT_EQ(2 * causal_pairs(0, 100), 10100);
  EXPECT_EQ(causal_pairs(0, 256) + causal_pairs(256, 256) + causal_pairs(512, 256) + causal_pairs(768, 232),
            500500);
  EXPECT_EQ(causal_pairs(0, 2048, 512), 917760);
}

}  // namespace
}  // namespace ridge
