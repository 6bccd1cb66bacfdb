#include "ops/kv_write/kv_write.h"

#include <cmath>
#include <cstring>

#include "ops/operator_call.h"

namespace ridge {
namespace {

using tests::Cpu;

/// A cache of any type whose every byte starts as 0xA5.
struct Pages {
  std::vector<uint8_t> bytes;
  Tensor tensor;
  Pages(DType dtype, Shape shape) : bytes(static_cast<size_t>(*tensor_bytes(dtype, shape)), 0xA5) {
    tensor = Tensor(bytes.data(), dtype, shape);
  }
};

TEST(KvWrite, K42_copies_rows_of_46_exactly_and_leaves_every_other_byte) {
  constexpr int64_t kTokens = 33, kHeads = 2, kDim = 46, kPages = 4, kPage = 16;
  std::vector<float> k(kTokens * kHeads * kDim), v(k.size());
  for (size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i % 251), v[i] = -k[i];
  std::vector<int64_t> slots(kTokens), owner(kPages * kPage, -1);
  for (int64_t t = 0; t < kTokens; ++t) {
    int64_t& slot = slots[static_cast<size_t>(t)];
    slot = t % 5 == 4 ? -1 : (t * 7) % (kPages * kPage);
    if (slot >= 0) owner[static_cast<size_t>(slot)] = t;
  }
  for (const Isa isa : tests::isas())
    for (const DType dtype : {kF32, kF16, kBF16}) {
      const Shape shape = {kPages, kHeads, kPage, kDim};
      Pages k_pages(dtype, shape), v_pages(dtype, shape), before(dtype, shape);
      KvWriteArgs a;
      a.k = Tensor(k.data(), {kTokens, kHeads, kDim}), a.v = Tensor(v.data(), {kTokens, kHeads, kDim});
      a.k_pages = k_pages.tensor, a.v_pages = v_pages.tensor, a.slots = Tensor(slots.data(), {kTokens});
      ASSERT_TRUE(Cpu(isa).call(a).ok());
      const auto row_bytes = static_cast<size_t>(kDim * dtype_block_bytes(dtype));
      for (int64_t slot = 0; slot < kPages * kPage; ++slot)
        for (int64_t h = 0; h < kHeads; ++h) {
          const int64_t page = slot / kPage, offset = slot % kPage, t = owner[static_cast<size_t>(slot)];
          const auto at = static_cast<size_t>(k_pages.tensor.offset(page, h, offset, 0)) * row_bytes / kDim;
          if (t < 0) {
            ASSERT_EQ(std::memcmp(&k_pages.bytes[at], &before.bytes[at], row_bytes), 0);
            ASSERT_EQ(std::memcmp(&v_pages.bytes[at], &before.bytes[at], row_bytes), 0);
          }
          for (int64_t i = 0; i < kDim && t >= 0; ++i) {
            ASSERT_EQ(k_pages.tensor.f64(page, h, offset, i), a.k.f64(t, h, i));
            ASSERT_EQ(v_pages.tensor.f64(page, h, offset, i), a.v.f64(t, h, i));
          }
        }
    }
}

struct OneRow {
  std::vector<float> k = {1, 2, 3}, v = {0, 0, 0}, k_scale = {7}, v_scale = {7};
  std::vector<int8_t> k_codes = {9, 9, 9}, v_codes = {9, 9, 9};
  std::vector<int64_t> slots = {0};
  KvWriteArgs args() {
    KvWriteArgs a;
    a.k = Tensor(k.data(), {1, 1, 3}), a.v = Tensor(v.data(), {1, 1, 3}), a.slots = Tensor(slots.data(), {1});
    a.k_pages = Tensor(k_codes.data(), {1, 1, 1, 3}), a.v_pages = Tensor(v_codes.data(), {1, 1, 1, 3});
    a.k_scale = Tensor(k_scale.data(), {1, 1, 1}), a.v_scale = Tensor(v_scale.data(), {1, 1, 1});
    return a;
  }
};

TEST(KvWrite, i8_scale_is_the_largest_magnitude_over_127_and_zeros_read_back_as_zeros) {
  for (const Isa isa : tests::isas()) {
    OneRow row;
    row.k = {127, -63.5f, 2.5f};  // a tie goes to the even code
    ASSERT_TRUE(Cpu(isa).call(row.args()).ok());
    EXPECT_EQ(row.k_scale[0], 1.0f);
    EXPECT_EQ(row.k_codes, (std::vector<int8_t>{127, -64, 2}));
    EXPECT_GT(row.v_scale[0], 0.0f);
    EXPECT_TRUE(std::isfinite(row.v_scale[0]));
    EXPECT_EQ(row.v_codes, (std::vector<int8_t>{0, 0, 0}));
  }
}

TEST(KvWrite, i8_row_with_a_value_that_is_not_finite_reads_back_as_NaN) {
  for (const Isa isa : tests::isas())
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      OneRow row;
      row.k = {1, bad, 2};
      ASSERT_TRUE(Cpu(isa).call(row.args()).ok());
      EXPECT_TRUE(std::isnan(row.k_scale[0]));
    }
}

TEST(KvWrite, refuses_a_slot_outside_of_the_cache_by_value_and_writes_nothing) {
  for (const int64_t slot : {int64_t{-2}, int64_t{1}, int64_t{1} << 40}) {
    OneRow row;
    row.slots = {slot};
    const Status s = Cpu().call(row.args());
    EXPECT_EQ(s.code(), Code::kInvalidArgument);
    EXPECT_NE(s.message().find(text("slots[0] is ", slot)), std::string::npos) << s.message();
    EXPECT_EQ(row.k_codes, (std::vector<int8_t>{9, 9, 9}));
    EXPECT_EQ(row.k_scale[0], 7.0f);
  }
}

TEST(KvWrite, refuses_i8_pages_without_scales_and_scales_without_i8_pages) {
  OneRow row;
  KvWriteArgs a = row.args();
  a.k_scale = {};
  EXPECT_EQ(Cpu().call(a).code(), Code::kInvalidArgument);
  std::vector<float> plain(3);
  a = row.args();
  a.v_pages = Tensor(plain.data(), {1, 1, 1, 3});
  EXPECT_EQ(Cpu().call(a).code(), Code::kInvalidArgument);
}

TEST(KvWrite, K22_counts_132_bytes_a_head_of_128_in_i8_and_256_in_bf16) {
  std::vector<float> x(2 * 128), scale(2);
  std::vector<int8_t> codes(2 * 128);
  std::vector<bf16> halves(2 * 128);
  std::vector<int64_t> slots = {0, -1};
  KvWriteArgs a;
  a.k = a.v = Tensor(x.data(), {2, 1, 128});
  a.slots = Tensor(slots.data(), {2}), a.written = int64_t{1};
  a.k_pages = a.v_pages = Tensor(codes.data(), {1, 1, 2, 128});
  a.k_scale = a.v_scale = Tensor(scale.data(), {1, 1, 2});
  EXPECT_EQ(Cpu().cost(a).total_written(), 2 * 132);
  a.k_pages = a.v_pages = Tensor(halves.data(), {1, 1, 2, 128});
  a.k_scale = a.v_scale = {};
  EXPECT_EQ(Cpu().cost(a).total_written(), 2 * 256);
}

}  // namespace
}  // namespace ridge
