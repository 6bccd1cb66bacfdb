// What attention computes on caches whose unused memory is poisoned, in every kv format and on every
// instruction set.

#include "ops/kv_write/kv_write.h"
#include "ops/paged_cache.h"
#include "sanitized.h"

namespace ridge {
namespace {

using namespace tests;

/// What both operators give for flat sequences (Q = K = 0, V = 1): 1 and ln n.
void expect_flat(const Rows& rows, int64_t row, int64_t n, double tolerance) {
  for (int64_t h = 0; h < rows.heads; ++h) {
    const auto at = static_cast<size_t>(row * rows.heads + h);
    if (n == 0)
      EXPECT_EQ(rows.lse[at], -INFINITY);
    else
      EXPECT_NEAR(rows.lse[at], std::log(static_cast<double>(n)), 1e-6);
    for (int64_t d = 0; d < rows.head_dim; ++d)
      ASSERT_NEAR(rows.o[at * static_cast<size_t>(rows.head_dim) + static_cast<size_t>(d)], n == 0 ? 0 : 1,
                  tolerance)
          << "row " << row << " head " << h << " element " << d;
  }
}

TEST(AttentionPrefill, K13_never_reads_the_tail_of_a_page) {
  for (const Isa isa : isas())
    for (const DType type : kv_types()) {
      PagedCache cache({3, 2, 40, 16, 12, 7, type, type});
      cache.poison();
      const std::vector<int64_t> lengths = {1, 17, 100};
      for (int64_t s = 0; s < 3; ++s) {
        cache.place(s, lengths[static_cast<size_t>(s)]);
        for (int64_t i = 0; i < lengths[static_cast<size_t>(s)]; ++i) cache.set(s, i, 0, 1);
      }
      Cpu cpu(isa);
      Rows last(3, 4, 40);
      ASSERT_TRUE(prefill(cpu, cache, last, {0, 1, 2, 3}).ok());
      for (int64_t s = 0; s < 3; ++s) expect_flat(last, s, lengths[static_cast<size_t>(s)], 1e-6);
      Rows whole(118, 4, 40);
      ASSERT_TRUE(prefill(cpu, cache, whole, {0, 1, 18, 118}).ok());
      for (int64_t i = 0; i < 17; ++i) expect_flat(whole, 1 + i, i + 1, 1e-6);
      for (int64_t i = 0; i < 100; ++i) expect_flat(whole, 18 + i, i + 1, 1e-6);
    }
}

TEST(AttentionPrefill, K14_gives_rows_without_keys_zeros_and_minus_infinity) {
  for (const Isa isa : isas())
    for (const DType type : kv_types()) {
      PagedCache cache({4, 1, 16, 4, 6, 3, type, type});
      cache.poison();
      for (int64_t s : {2, 3}) {
        cache.place(s, 7);
        for (int64_t i = 0; i < 7; ++i) cache.set(s, i, 0, 1);
      }
      Cpu cpu(isa);
      Rows rows(10, 2, 16);  // the last two rows are no sequence's
      ASSERT_TRUE(prefill(cpu, cache, rows, {0, 0, 5, 5, 8}).ok());
      for (int64_t i = 0; i < 5; ++i) expect_flat(rows, i, 0, 0);
      for (int64_t i = 0; i < 3; ++i) expect_flat(rows, 5 + i, 5 + i, 1e-6);
      for (size_t i = 8 * 2 * 16; i < rows.o.size(); ++i)
        EXPECT_TRUE(std::isnan(rows.o[i])) << "row of nobody written";
      EXPECT_TRUE(std::isnan(rows.lse[16]));
    }
}

TEST(AttentionPrefill, a_query_never_sees_later_keys_of_its_own_chunk) {
  for (const Isa isa : isas()) {
    PagedCache cache({1, 1, 32, 16, 8, 8});
    cache.poison();
    cache.place(0, 100);
    for (int64_t i = 0; i < 70; ++i) cache.set(0, i, 0, 1);  // keys 70 … 99 hold NaN and infinity
    Cpu cpu(isa);
    Rows rows(100, 3, 32);
    ASSERT_TRUE(prefill(cpu, cache, rows, {0, 100}).ok());
    for (int64_t i = 0; i < 70; ++i) expect_flat(rows, i, i + 1, 1e-6);
    for (int64_t i = 70; i < 100; ++i) EXPECT_TRUE(std::isnan(rows.o[static_cast<size_t>(i * 3 * 32)])) << i;
  }
}

TEST(Attention, a_window_reads_neither_keys_nor_pages_before_it) {
  for (const Isa isa : isas())
    for (const int64_t window : {1, 5, 64, 65, 600}) {
      PagedCache cache({1, 1, 24, 16, 64, 64});
      cache.poison();
      cache.place(0, 1000);
      const int64_t first = 1000 - 3 + 1 - window;  // of the earlier of the last three queries
      for (int64_t i = std::max<int64_t>(first, 0); i < 1000; ++i) cache.set(0, i, 0, 1);
      for (int64_t page = 0; page < first / 16; ++page) cache.set_page(0, page, 2147480000);
      Cpu cpu(isa);
      Rows rows(3, 2, 24), one(1, 2, 24);
      AttentionPrefillArgs a;
      cache.attach(&a), rows.attach(&a);
      std::vector<int64_t> query_start = {0, 3};
      a.query_start = Tensor(query_start.data(), {2}), a.window = window;
      const Status s = cpu.call(a);
      ASSERT_TRUE(s.ok()) << s.message();
      for (int64_t i = 0; i < 3; ++i) expect_flat(rows, i, window, 1e-6);
      AttentionDecodeArgs b;
      cache.attach(&b), one.attach(&b);
      b.window = window;
      ASSERT_TRUE(cpu.call(b).ok());
      expect_flat(one, 0, window, 1e-6);
    }
}

class AttentionHeads : public testing::TestWithParam<std::tuple<Isa, int64_t>> {};

/// Of 1,024 keys of weight 1/1024 each, the first and the last of every page are marked, each in a lane of
/// its own: value 1024 in that lane, 0 in the others. A lane of the output is 1 if its key was read once and
/// no other.
TEST_P(AttentionHeads, K17_find_every_pages_first_and_last_key_at_any_ratio_of_heads_and_page_size) {
  constexpr int64_t n = kSanitized ? 300 : 1024;
  const auto [isa, head_dim] = GetParam();
  Cpu cpu(isa);
  for (const int64_t page_size : {1, 3, 16, 64, 255, 256}) {
    const int64_t pages = (n + page_size - 1) / page_size;
    PagedCache cache({1, 1, head_dim, page_size, pages, pages});
    cache.poison();
    cache.place(0, n);
    std::vector<int64_t> marked;
    for (int64_t key = 0; key < n; ++key) {
      cache.set(0, key, 0, 0);
      if (key % page_size == 0 || key % page_size == page_size - 1 || key == n - 1) marked.push_back(key);
    }
    const auto count = static_cast<int64_t>(marked.size());
    for (int64_t first = 0; first < count; first += head_dim) {
      const auto key_of = [&](int64_t lane) { return marked[static_cast<size_t>((first + lane) % count)]; };
      for (int64_t d = 0; d < head_dim; ++d) cache.set_value(0, key_of(d), d, n);
      for (const int64_t ratio : {1, 2, 3, 5, 7, 8, 12, 16, 20, 71}) {
        if (kSanitized && (ratio == 2 || (ratio > 5 && ratio < 71))) continue;
        Rows rows(1, ratio, head_dim);
        ASSERT_TRUE(decode(cpu, cache, rows).ok());
        for (int64_t i = 0; i < ratio * head_dim; ++i)
          ASSERT_EQ(rows.o[static_cast<size_t>(i)], 1.0f)
              << "ratio " << ratio << " page size " << page_size << " key " << key_of(i % head_dim);
      }
      for (int64_t d = 0; d < head_dim; ++d) cache.set_value(0, key_of(d), d, 0);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, AttentionHeads,
                         testing::Combine(testing::ValuesIn(isas()),
                                          testing::Values(40, 64, 80, 96, 128, 192, 256, 512)),
                         [](const auto& i) {
                           return text(isa_name(std::get<0>(i.param)), "_", std::get<1>(i.param));
                         });

TEST(AttentionDecode, K18_gives_empty_and_padded_sequences_zeros) {
  for (const Isa isa : isas())
    for (const DType type : kv_types()) {
      PagedCache cache({8, 2, 16, 4, 4, 2, type, type});
      cache.poison();
      cache.place(0, 5), cache.place(3, 1);
      for (int64_t i = 0; i < 5; ++i) cache.set(0, i, 0, 1);
      cache.set(3, 0, 0, 1);
      Cpu cpu(isa);
      Rows rows(8, 4, 16);
      ASSERT_TRUE(decode(cpu, cache, rows).ok());
      const std::vector<int64_t> lengths = {5, 0, 0, 1, 0, 0, 0, 0};
      for (int64_t s = 0; s < 8; ++s) expect_flat(rows, s, lengths[static_cast<size_t>(s)], 1e-6);
    }
}

TEST(AttentionDecode, K18_merging_a_split_without_weight_leaves_the_bits_of_the_others) {
  for (const Isa isa : isas()) {
    // Scores of the first two splits of 512 are -inf: the same as a window that leaves them out.
    PagedCache cache({1, 1, 16, 16, 80, 80});
    cache.place(0, 1200);
    cache.set_random(0, 5);
    Cpu cpu(isa);
    Rows seen(1, 2, 16), hidden(1, 2, 16);
    for (Rows* rows : {&seen, &hidden}) {
      rows->randomize(3);
      for (float& x : rows->q) x = std::fabs(x);
    }
    AttentionDecodeArgs a;
    cache.attach(&a), seen.attach(&a);
    a.window = 1200 - 1024;
    ASSERT_TRUE(cpu.call(a).ok());
    for (int64_t i = 0; i < 1024; ++i) cache.set(0, i, -INFINITY, 1e30);
    ASSERT_TRUE(decode(cpu, cache, hidden).ok());
    EXPECT_EQ(seen.o, hidden.o);
    EXPECT_EQ(seen.lse, hidden.lse);
  }
}

TEST(AttentionDecode, K22_keeps_every_pair_of_kv_formats_apart_over_300_steps) {
  const auto want = [](DType type) {
    return type == kBF16 ? 0.30078125 : type == kF16 ? static_cast<double>(to_f32(to_f16(0.3f))) : 0.3;
  };
  std::vector<Cpu> cpus;
  for (const Isa isa : isas()) cpus.emplace_back(isa);
  for (const DType k_type : kv_types())
    for (const DType v_type : kv_types()) {
      PagedCache cache({1, 1, 128, 16, 20, 20, k_type, v_type});
      cache.poison();
      cache.place(0, 300);
      // Every instruction set writes a step of its own, and each reads what the others wrote.
      std::vector<float> key(128, 0.0f), value(128, 0.3f);
      for (int64_t n = 1; n <= 300; ++n) {
        cache.set_length(0, n);
        KvWriteArgs w;
        w.k = Tensor(key.data(), {1, 1, 128}), w.v = Tensor(value.data(), {1, 1, 128});
        PagedAttention pages;
        cache.attach(&pages);
        w.k_pages = pages.k_pages, w.v_pages = pages.v_pages, w.k_scale = pages.k_scale,
        w.v_scale = pages.v_scale;
        std::vector<int64_t> slot = {cache.slot(0, n - 1)};
        w.slots = Tensor(slot.data(), {1});
        ASSERT_TRUE(cpus[static_cast<size_t>(n) % cpus.size()].call(w).ok());
        if (kSanitized && n % 13 != 1) continue;
        for (Cpu& cpu : cpus) {
          Rows rows(1, 2, 128);
          ASSERT_TRUE(decode(cpu, cache, rows).ok());
          for (const float x : rows.o)
            ASSERT_NEAR(x, want(v_type), 1e-6) << dtype_name(k_type) << " " << dtype_name(v_type) << " step "
                                               << n << " " << isa_name(cpu.stream().target().isa);
        }
      }
    }
}

TEST(Attention, wrong_tables_are_refused_by_value_before_anything_is_written) {
  Cpu cpu;
  PagedCache cache({1, 1, 16, 4, 4, 2});
  cache.place(0, 8);
  Rows rows(2, 1, 16);
  const auto refused = [&](const Status& s, const char* what) {
    EXPECT_EQ(s.code(), Code::kInvalidArgument);
    EXPECT_NE(s.message().find(what), std::string::npos) << s.message();
    for (const float x : rows.o) EXPECT_TRUE(std::isnan(x));
  };
  refused(prefill(cpu, cache, rows, {0, 3}), "the next 3");
  refused(prefill(cpu, cache, rows, {1, 0}), "the next 0");
  refused(prefill(cpu, cache, rows, {-1, 1}), "query_start[0] is -1");
  refused(prefill(cpu, cache, rows, {0, 1, 2}), "query_start has 3");
  cache.set_length(0, 9);
  refused(prefill(cpu, cache, rows, {0, 1}), "kv_length[0] is 9");
  cache.set_length(0, -1);
  refused(prefill(cpu, cache, rows, {0, 1}), "kv_length[0] is -1");
  cache.set_length(0, 8);
  for (const int32_t page : {-1, 4, 2147480000}) {
    cache.set_page(0, 1, page);
    refused(prefill(cpu, cache, rows, {0, 1}), text("page_table[0, 1] is ", page).c_str());
  }
}

TEST(Attention, heads_that_kv_heads_do_not_divide_and_scales_of_the_wrong_type_are_refused) {
  Cpu cpu;
  PagedCache two({1, 2, 16, 4, 4, 2});
  Rows rows(1, 3, 16);
  EXPECT_NE(decode(cpu, two, rows).message().find("3 heads"), std::string::npos);
  PagedCache codes({1, 1, 16, 4, 4, 2, kI8, kI8});
  AttentionDecodeArgs a;
  codes.attach(&a), rows.attach(&a);
  a.k_scale = {};
  EXPECT_EQ(cpu.call(a).code(), Code::kInvalidArgument);
  Rows wide(1, 1, 577);
  PagedCache large({1, 1, 577, 1, 1, 1});
  AttentionDecodeArgs b;
  large.attach(&b), wide.attach(&b);
  const auto selection = registered<AttentionDecodeArgs>().select(cpu.stream().target(), &b);
  ASSERT_TRUE(selection.ok());
  ASSERT_FALSE(selection->declines.empty());
  EXPECT_NE(selection->declines[0].find("head_dim is 577"), std::string::npos);
}

}  // namespace
}  // namespace ridge
