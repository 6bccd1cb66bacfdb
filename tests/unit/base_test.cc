#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/status.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "tensor/blocks.h"
#include "tensor/tensor.h"

namespace ridge {
namespace {

TEST(Half, every_f16_survives_the_way_through_f32) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const f16 h{static_cast<uint16_t>(bits)};
    if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0) {
      EXPECT_TRUE(std::isnan(to_f32(to_f16(to_f32(h)))));
    } else {
      ASSERT_EQ(to_f16(to_f32(h)).bits, h.bits) << bits;
    }
  }
}

TEST(Half, rounding_is_to_nearest_even) {
  EXPECT_EQ(to_f16(1.0f + 0x1p-11f).bits, 0x3c00);
  EXPECT_EQ(to_f16(1.0f + 3 * 0x1p-11f).bits, 0x3c02);
  EXPECT_EQ(to_f16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0);
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(to_f32(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

// Vectors published with the Random123 library (kat_vectors, philox4x32 10 rounds).
TEST(Philox, published_vectors) {
  EXPECT_EQ(philox(0, 0, 0), (Philox4{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Philox4{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(Status, names_code_and_place) {
  const Status s = invalid_argument("page_size is ", 24).within("plan");
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_EQ(s.message(), "plan: page_size is 24");
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(s.within("plan").message(), s.message()) << "a place that is named already";
  EXPECT_EQ(s.within("engine").message(), "engine: plan: page_size is 24");
}

TEST(Text, a_line_with_hostile_text_stays_one_line_that_drives_no_terminal) {
  EXPECT_EQ(visible("template: \x1b[31mred\nline2"), "template: \\x1b[31mred\\x0aline2");
  EXPECT_EQ(visible("m.gguf: 'Größe' … is 7"), "m.gguf: 'Größe' … is 7");
  EXPECT_EQ(visible("\u202e\xff"), "\\u{202e}\\xff");
  EXPECT_EQ(visible(std::string(100, 'x'), 10), "xxxxxxxxxx…");
}

TEST(Text, hostile_names_are_made_visible_and_short) {
  EXPECT_EQ(printable("a\n\x1b\x7f"), "'a\\x0a\\x1b\\x7f'");
  EXPECT_EQ(printable(std::string("\0b", 2)), "'\\x00b'");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "'\\u{9b}31m'")
      << "the control sequence introducer of 8-bit terminals";
  EXPECT_EQ(printable("\xff\xc0\x80\xed\xa0\x80\xe4\xb8"), "'\\xff\\xc0\\x80\\xed\\xa0\\x80\\xe4\\xb8'");
  EXPECT_LT(printable(std::string(100000, 'x')).size(), 100u);
}

TEST(Text, names_of_any_script_stay_readable) {
  for (const char* name : {"blk.0.w", "Größe", "модель", "模型 7", "نموذج", "दिल्ली", "😀", "e\u0301"})
    EXPECT_EQ(printable(name), text("'", name, "'"));
  // Each of these reorders, hides or splits what stands around it.
  for (const auto& [written, shown] : {std::pair{"\u202e", "202e"},
                                       {"\u2066", "2066"},
                                       {"\u200f", "200f"},
                                       {"\u061c", "61c"},
                                       {"\u200b", "200b"},
                                       {"\u2028", "2028"},
                                       {"\ufeff", "feff"},
                                       {"\u00ad", "ad"},
                                       {"\ue000", "e000"},
                                       {"\U000e0041", "e0041"},
                                       {"\uffff", "ffff"},
                                       {"\U0010ffff", "10ffff"}})
    EXPECT_EQ(printable(text("a", written, "z")), text("'a\\u{", shown, "}z'"));
}

TEST(Text, a_long_name_is_cut_between_characters) {
  std::string name;
  for (int i = 0; i < 100; ++i) name += "模";
  const std::string shown = printable(name, 10);
  EXPECT_EQ(shown, "'模模模…'");
  EXPECT_TRUE(is_utf8(shown));
  EXPECT_EQ(printable("abc", 3), "'abc'");
  EXPECT_EQ(printable("abc", 0), "'…'");
}

TEST(Blocks, encoded_rows_decode_near_their_values) {
  Random random(1);
  float values[512];
  for (float& v : values) v = random.normal();
  for (const DType t : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K}) {
    uint8_t row[2048];
    encode_row(t, values, 512, row);
    double worst = 0;
    for (int64_t b = 0; b < 512 / dtype_block(t); ++b) {
      double out[256];
      decode_block(t, row, b, out);
      for (int64_t i = 0; i < dtype_block(t); ++i)
        worst = std::max(worst, std::fabs(out[i] - values[b * dtype_block(t) + i]));
    }
    const double step = t == kQ8_0 ? 0.02 : t == kQ6_K ? 0.1 : t == kQ5_0 ? 0.16 : 0.4;
    EXPECT_LT(worst, step) << dtype_name(t);
    EXPECT_GT(worst, step / 50) << dtype_name(t);
  }
}

TEST(Tensor, strides_slices_and_sizes) {
  float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  Tensor t(data, {3, 4});
  EXPECT_EQ(t.f64(2, 1), 9);
  EXPECT_EQ(t.slice(1, 2).f64(1, 1), 9);
  EXPECT_TRUE(t.is_dense());
  t.strides[0] = 5;
  EXPECT_FALSE(t.is_dense());
  EXPECT_FALSE(tensor_bytes(kQ4_1, {2, 33}).ok());
  EXPECT_FALSE(tensor_bytes(kF32, {int64_t{1} << 62, 8}).ok());
  EXPECT_EQ(*tensor_bytes(kQ6_K, {2, 512}), 840);
}

TEST(Tensor, a_dimension_of_0_does_not_excuse_a_product_that_overflows) {
  const int64_t huge = int64_t{1} << 40;
  for (const Shape& shape : {Shape{0, huge, huge}, Shape{huge, 0, huge}, Shape{huge, huge, 0}}) {
    const auto bytes = tensor_bytes(kF32, shape);
    ASSERT_FALSE(bytes.ok()) << shape.str();
    EXPECT_EQ(bytes.status().code(), Code::kInvalidArgument);
    EXPECT_NE(bytes.status().message().find(shape.str()), std::string::npos) << bytes.status().message();
  }
  EXPECT_FALSE(tensor_bytes(kF32, {int64_t{1} << 61, 0, 2}).ok()) << "2^62 elements fit, their bytes do not";
  EXPECT_FALSE(tensor_bytes(kF32, {0, -1}).ok());
  EXPECT_EQ(*tensor_bytes(kF32, {0, huge}), 0);
  EXPECT_EQ(*tensor_bytes(kF32, {huge, 0}), 0);
}

}  // namespace
}  // namespace ridge
