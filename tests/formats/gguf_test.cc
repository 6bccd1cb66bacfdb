// What a good file says, and how typed getters answer.

#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "formats/gguf_bytes.h"
#include "formats/gguf_writer.h"

namespace ridge {
namespace {

std::string small_model() {
  static const std::vector<float> kNorm = {1, 2, 3};
  static const std::vector<uint8_t> kCodes(3 * 2 * 34, 7);
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_u32("llama.block_count", 2);
  writer.add_u64("big", 1ull << 40);
  writer.add_i32("negative", -3);
  writer.add_f32("eps", 1e-5f);
  writer.add_f32("nan", std::numeric_limits<float>::quiet_NaN());
  writer.add_bool("flag", true);
  const std::vector<std::string> tokens = {"a", "", "\xf0\x9f\x98\x80", std::string("z\0z", 3)};
  writer.add_string_array("tokens", tokens);
  writer.add_string_array("none", {});
  const std::vector<float> scores = {0.5f, -std::numeric_limits<float>::infinity()};
  writer.add_f32_array("scores", scores);
  const std::vector<int32_t> kinds = {1, -1, 3};
  writer.add_i32_array("kinds", kinds);
  writer.add_tensor("norm", kF32, {3}, kNorm.data());
  writer.add_tensor("codes", kQ8_0, {3, 64}, kCodes.data());
  const auto bytes = writer.bytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *bytes;
}

TEST(Gguf, a_good_file_gives_back_what_was_written) {
  const std::string bytes = small_model();
  const auto file = open_gguf(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->entries().size(), 11u);
  EXPECT_EQ(*file->get_string("general.architecture"), "llama");
  EXPECT_EQ(*file->get_u64("llama.block_count"), 2u);
  EXPECT_EQ(*file->get_u64("big"), 1ull << 40);
  EXPECT_EQ(*file->get_i64("negative"), -3);
  EXPECT_EQ(*file->get_f32("eps"), 1e-5f);
  EXPECT_TRUE(*file->get_bool("flag"));
  const auto tokens = file->get_string_array("tokens");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(*tokens,
            (std::vector<std::string_view>{"a", "", "\xf0\x9f\x98\x80", std::string_view("z\0z", 3)}));
  EXPECT_TRUE(file->get_string_array("none")->empty());
  EXPECT_EQ(*file->get_i32_array("kinds"), (std::vector<int32_t>{1, -1, 3}));
  const auto scores = file->get_f32_array("scores");
  EXPECT_EQ((*scores)[0], 0.5f);
  EXPECT_TRUE(std::isinf((*scores)[1]));
}

TEST(Gguf, shapes_are_outermost_first_and_bytes_are_those_of_the_tensor) {
  const std::string bytes = small_model();
  const auto file = open_gguf(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto codes = file->tensor("codes");
  ASSERT_TRUE(codes.ok()) << codes.status().message();
  EXPECT_EQ(codes->shape, (Shape{3, 64}));
  EXPECT_EQ(codes->type->dtype, kQ8_0);
  EXPECT_EQ(codes->bytes, 3 * 2 * 34);
  EXPECT_EQ(codes->offset % 32, 0);
  EXPECT_EQ(codes->offset, file->data_offset() + 32);
  float norm[3] = {};
  ASSERT_TRUE(file->read(*file->tensor("norm"), norm).ok());
  EXPECT_EQ(norm[2], 3.0f);
  ASSERT_TRUE(file->read_range(*file->tensor("norm"), 4, 4, norm).ok());
  EXPECT_EQ(norm[0], 2.0f);
  EXPECT_FALSE(file->read_range(*file->tensor("norm"), 8, 8, norm).ok());
  const auto data = file->read_all(2);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data->data()) % (2 << 20), 0u);
  EXPECT_EQ(file->view(*file->tensor("norm"), *data).f64(1), 2.0);
}

TEST(Gguf, a_missing_key_and_another_type_are_told_apart) {
  const std::string bytes = small_model();
  const auto file = open_gguf(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->get_u64("nowhere").status().code(), Code::kNotFound);
  EXPECT_EQ(file->get_u64("nowhere").status().message(),
            "model.gguf: has no key 'nowhere', wanted an unsigned integer");
  const auto found = file->find_f32("nowhere");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
  EXPECT_EQ(file->find_f32("big").status().code(), Code::kCorrupt);
  EXPECT_EQ(file->find_f32("big").status().message(), "model.gguf: key 'big' is u64, wanted a finite f32");
  EXPECT_EQ(file->get_string_array("flag").status().message(),
            "model.gguf: key 'flag' is bool, wanted array of string");
  EXPECT_EQ(file->get_string("tokens").status().message(),
            "model.gguf: key 'tokens' is array of string, wanted string");
}

TEST(Gguf, values_that_do_not_fit_are_refused_not_wrapped) {
  const std::string bytes = small_model();
  const auto file = open_gguf(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->get_u64("negative").status().message(),
            "model.gguf: key 'negative' is -3, wanted an unsigned integer");
  EXPECT_EQ(file->get_f32("nan").status().message(), "model.gguf: key 'nan' is nan, wanted a finite f32");
  EXPECT_EQ(file->get_string_array("tokens", 3).status().message(),
            "model.gguf: key 'tokens' has 4 elements, the limit is 3");
}

TEST(Gguf, every_integer_type_converts) {
  GgufBytes b;
  b.header(0, 9);
  b.key("a", 0).put<uint8_t>(255).key("b", 1).put<int8_t>(-128).key("c", 2).put<uint16_t>(65535);
  b.key("d", 3).put<int16_t>(-32768).key("e", 4).put<uint32_t>(1u << 31).key("f", 5).put<int32_t>(-1);
  b.key("g", 10).put<uint64_t>(1ull << 63).key("h", 11).put<int64_t>(-5).key("i", 12).put<double>(0.25);
  const auto file = open_gguf(b.bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(*file->get_u64("a"), 255u);
  EXPECT_EQ(*file->get_i64("b"), -128);
  EXPECT_EQ(*file->get_u64("c"), 65535u);
  EXPECT_EQ(*file->get_i64("d"), -32768);
  EXPECT_EQ(*file->get_i64("e"), 1ll << 31);
  EXPECT_EQ(*file->get_i64("f"), -1);
  EXPECT_EQ(*file->get_u64("g"), 1ull << 63);
  EXPECT_FALSE(file->get_i64("g").ok());
  EXPECT_EQ(*file->get_i64("h"), -5);
  EXPECT_EQ(*file->get_f32("i"), 0.25f);
}

TEST(Gguf, version_2_is_read) {
  const std::vector<float> data(8, 1.5f);
  GgufWriter writer;
  writer.add_tensor("w", kF32, {2, 4}, data.data());
  const auto bytes = writer.bytes(2);
  const auto file = open_gguf(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->version(), 2u);
  EXPECT_EQ(file->tensor("w")->shape, (Shape{2, 4}));
}

TEST(Gguf, alignment_of_the_file_places_the_data) {
  const std::vector<float> data(3, 1.5f);
  GgufWriter writer;
  writer.add_u32("general.alignment", 4096);
  writer.add_tensor("a", kF32, {3}, data.data());
  writer.add_tensor("b", kF32, {3}, data.data());
  const auto bytes = writer.bytes();
  const auto file = open_gguf(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->alignment(), 4096);
  EXPECT_EQ(file->data_offset(), 4096);
  EXPECT_EQ(file->tensor("b")->offset, 8192);
}

TEST(Gguf, every_type_without_a_kernel_is_listed_and_refused_by_name) {
  GgufBytes b;
  b.header(2, 0).tensor("blk.0.ffn_up.weight", {256, 2}, 11, 0).tensor("ok", {2}, 0, 224);
  b.pad_to_data().data(224 + 8);
  const auto file = open_gguf(b.bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->find_tensor("blk.0.ffn_up.weight")->bytes, 220);
  const auto refused = file->tensor("blk.0.ffn_up.weight");
  EXPECT_EQ(refused.status().code(), Code::kDeclined);
  EXPECT_EQ(refused.status().message(),
            "model.gguf: 'blk.0.ffn_up.weight' has type q3_k: no kernel for it yet");
  EXPECT_TRUE(file->tensor("ok").ok());
  EXPECT_EQ(file->tensor("absent").status().code(), Code::kNotFound);
}

TEST(Gguf, types_agree_with_the_dtypes_that_they_map_to) {
  int mapped = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    const GgufTensorType* const type = gguf_tensor_type(id);
    if (type == nullptr || !type->dtype) continue;
    ++mapped;
    EXPECT_STREQ(type->name, dtype_name(*type->dtype));
    EXPECT_EQ(type->block, dtype_block(*type->dtype));
    EXPECT_EQ(type->block_bytes, dtype_block_bytes(*type->dtype));
    EXPECT_EQ(gguf_tensor_type_id(*type->dtype), id);
  }
  EXPECT_EQ(mapped, 9);
}

TEST(Gguf, empty_tensors_scalars_and_files_without_tensors_are_good) {
  GgufBytes b;
  b.header(3, 0).tensor("empty", {0}, 0, 0).tensor("scalar", {}, 0, 0).tensor("empty_too", {7, 0}, 0, 32);
  b.pad_to_data().data(32);
  const auto file = open_gguf(b.bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensor("empty")->bytes, 0);
  EXPECT_EQ(file->tensor("scalar")->bytes, 4);
  EXPECT_EQ(file->tensor("empty_too")->shape, (Shape{0, 7}));
  const auto none = open_gguf(GgufBytes().header(0, 0).bytes());
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->read_all(1)->bytes(), 0);
}

TEST(Gguf, metadata_is_shown_as_text) {
  const std::string bytes = small_model();
  const auto file = open_gguf(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(gguf_entry_text(*file->entry("general.architecture")), "'llama'");
  EXPECT_EQ(gguf_entry_text(*file->entry("negative")), "-3");
  EXPECT_EQ(gguf_entry_text(*file->entry("flag")), "true");
  EXPECT_EQ(gguf_entry_text(*file->entry("kinds")), "[3 of i32: 1, -1, 3]");
  EXPECT_EQ(gguf_entry_text(*file->entry("tokens")), "[4 of string: 'a', '', '\U0001f600', 'z\\x00z']");
  EXPECT_EQ(gguf_entry_text(*file->entry("none")), "[0 of string]");
  EXPECT_EQ(gguf_entry_type(*file->entry("scores")), "array of f32");
}

// The two models of the project. Their paths come from the environment; without them there is nothing to
// open.
void real_model_opens(const char* variable, const char* architecture, size_t tensors) {
  const char* const path = std::getenv(variable);
  if (path == nullptr) GTEST_SKIP() << variable << " is not set: it names the model file";
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(*file->get_string("general.architecture"), architecture);
  EXPECT_EQ(file->tensors().size(), tensors);
  for (const GgufTensor& tensor : file->tensors()) EXPECT_TRUE(file->tensor(tensor.name).ok()) << tensor.name;
  const auto tokens = file->get_string_array("tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ(file->get_i32_array("tokenizer.ggml.token_type")->size(), tokens->size());
  const auto data = file->read_all(2);
  ASSERT_TRUE(data.ok()) << data.status().message();
  const GgufTensor& last = file->tensors().back();
  std::vector<std::byte> alone(static_cast<size_t>(last.bytes));
  ASSERT_TRUE(file->read(last, alone.data()).ok());
  EXPECT_EQ(std::memcmp(alone.data(), file->view(last, *data).data, alone.size()), 0);
}

TEST(Gguf, smollm2_opens_and_every_tensor_has_a_dtype) {
  real_model_opens("RIDGE_SMOLLM2", "llama", 272);
}
TEST(Gguf, gemma3_opens_and_every_tensor_has_a_dtype) {
  real_model_opens("RIDGE_GEMMA3", "gemma3", 236);
}

}  // namespace
}  // namespace ridge
