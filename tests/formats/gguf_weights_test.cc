#include "formats/gguf_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/gguf_bytes.h"
#include "formats/gguf_writer.h"
#include "tensor/blocks.h"

namespace ridge {
namespace {

constexpr DType kTypes[] = {kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K};

/// A file of sound tensors "a", "T" and "z" of one type, where `spoil` may change the bytes of T [4, 256].
std::string file_of(DType dtype, const std::function<void(std::byte*)>& spoil) {
  const int64_t row_bytes = 256 / dtype_block(dtype) * dtype_block_bytes(dtype);
  std::vector<float> values(256, 0.5f);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = -1;
  std::vector<std::byte> sound(static_cast<size_t>(4 * row_bytes));
  for (int64_t r = 0; r < 4; ++r) {
    if (is_block_quantized(dtype)) {
      encode_row(dtype, values.data(), 256, sound.data() + r * row_bytes);
      continue;
    }
    const Tensor row(sound.data() + r * row_bytes, dtype, {256});
    for (int64_t c = 0; c < 256; ++c) row.set(values[static_cast<size_t>(c)], c);
  }
  std::vector<std::byte> changed = sound;
  spoil(changed.data());
  GgufWriter w;
  w.add_tensor("a", dtype, {4, 256}, sound.data());
  w.add_tensor("T", dtype, {4, 256}, changed.data());
  w.add_tensor("z", dtype, {4, 256}, sound.data());
  return w.bytes().take();
}

TEST(GgufWeights, I19_a_nan_in_weight_5_of_tensor_T_is_reported_as_that) {
  const std::string bytes =
      file_of(kF32, [](std::byte* t) { reinterpret_cast<float*>(t)[5] = std::nanf(""); });
  const auto file = open_gguf(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto bad = find_bad_weights(*file, 2);
  ASSERT_TRUE(bad.ok()) << bad.status().message();
  ASSERT_EQ(bad->size(), 1u);
  EXPECT_EQ((*bad)[0].tensor, "T");
  EXPECT_EQ((*bad)[0].first, 5);
  EXPECT_EQ((*bad)[0].count, 1);
  const Status refused = refuse_bad_weights(*file, *bad);
  EXPECT_EQ(refused.code(), Code::kCorrupt);
  EXPECT_EQ(refused.message(), "model.gguf: tensor 'T' weight 5 is nan");
}

TEST(GgufWeights, I19_every_type_is_looked_through_and_sound_files_pass) {
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const std::string sound = file_of(dtype, [](std::byte*) {});
    const auto good = open_gguf(sound);
    ASSERT_TRUE(good.ok());
    ASSERT_TRUE(find_bad_weights(*good, 1)->empty());
    EXPECT_TRUE(refuse_bad_weights(*good, {}).ok());
    // An infinite weight, or block scale, in the last row.
    const std::string bytes = file_of(dtype, [&](std::byte* t) {
      const int64_t last = 3 * (256 / dtype_block(dtype)) * dtype_block_bytes(dtype);
      if (dtype == kF32)
        *reinterpret_cast<float*>(t + last) = INFINITY;
      else if (dtype == kQ6_K)  // its scale ends the block
        std::memset(t + last + dtype_block_bytes(dtype) - 2, 0xff, 2);
      else
        std::memset(t + last, 0xff, 2);  // NaN in f16 and bf16: a plain weight, or a block's scale
    });
    const auto file = open_gguf(bytes);
    ASSERT_TRUE(file.ok());
    const auto bad = find_bad_weights(*file, 1);
    ASSERT_TRUE(bad.ok());
    ASSERT_EQ(bad->size(), 1u);
    EXPECT_EQ((*bad)[0].tensor, "T");
    EXPECT_EQ((*bad)[0].first, 3 * 256);
    EXPECT_EQ((*bad)[0].count, dtype_block(dtype));
    EXPECT_FALSE(std::isfinite((*bad)[0].value));
  }
}

TEST(GgufWeights, bad_weights_of_several_pieces_are_counted_together) {
  constexpr int64_t kWeights = 3 << 20;  // 12 MiB: three pieces
  std::vector<float> values(kWeights, 1.0f);
  for (const int64_t i : {kWeights - 1, int64_t{2} << 20, (int64_t{1} << 20) + 7})
    values[static_cast<size_t>(i)] = NAN;
  GgufWriter w;
  w.add_tensor("w", kF32, {kWeights}, values.data());
  const std::string bytes = w.bytes().take();
  const auto file = open_gguf(bytes);
  ASSERT_TRUE(file.ok());
  const auto bad = find_bad_weights(*file, 3);
  ASSERT_TRUE(bad.ok() && bad->size() == 1);
  EXPECT_EQ((*bad)[0].first, (1 << 20) + 7);
  EXPECT_EQ((*bad)[0].count, 3);
  EXPECT_NE(refuse_bad_weights(*file, *bad).message().find("2 more in 1 tensor"), std::string::npos);
  EXPECT_EQ(find_bad_weights(*file, 0).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ridge
