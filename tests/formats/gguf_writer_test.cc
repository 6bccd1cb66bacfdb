#include "formats/gguf_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <vector>

#include "base/files.h"
#include "formats/gguf_bytes.h"

namespace ridge {
namespace {

TEST(GgufWriter, every_byte_is_where_the_format_wants_it) {
  const float data[] = {1, 2, 3};
  GgufWriter writer;
  writer.add_u32("k", 7);
  writer.add_string_array("s", std::vector<std::string>{"a", ""});
  writer.add_tensor("w", kF32, {3, 1}, data);
  GgufBytes wanted;
  wanted.header(1, 2).u32("k", 7).key("s", 9).put<uint32_t>(8).put<uint64_t>(2).str("a").str("");
  wanted.tensor("w", {1, 3}, 0, 0).pad_to_data().put(1.0f).put(2.0f).put(3.0f).pad_to_data();
  EXPECT_EQ(*writer.bytes(), wanted.bytes());
}

TEST(GgufWriter, rows_are_asked_for_in_order_and_in_pieces) {
  constexpr int64_t kExperts = 3, kRows = 1000, kColumns = 1024;  // 12 MiB
  int64_t next = 0, calls = 0;
  GgufWriter writer;
  writer.add_tensor("w", kF32, {kExperts, kRows, kColumns},
                    [&](int64_t first, int64_t count, std::byte* out) {
                      EXPECT_EQ(first, next);
                      next = first + count, ++calls;
                      auto* const values = reinterpret_cast<float*>(out);
                      for (int64_t i = 0; i < count * kColumns; ++i)
                        values[i] = static_cast<float>(first + i / kColumns);
                      return Status();
                    });
  const auto bytes = writer.bytes();
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(next, kExperts * kRows);
  EXPECT_GE(calls, 10);
  const auto file = open_gguf(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto data = file->read_all(2);
  const Tensor w = file->view(*file->tensor("w"), *data);
  EXPECT_EQ(w.f64(2, 999, 1023), 2999.0);
  EXPECT_EQ(w.f64(1, 0, 0), 1000.0);
}

TEST(GgufWriter, what_cannot_be_written_is_named) {
  const float data[256] = {};
  const auto message = [](const GgufWriter& writer) { return writer.bytes().status().message(); };
  GgufWriter keys, names, blocks, type, deep, alignment;
  keys.add_u32("k", 1);
  keys.add_bool("k", true);
  EXPECT_EQ(message(keys), "key 'k' was added twice");
  names.add_tensor("w", kF32, {1}, data);
  names.add_tensor("w", kF32, {1}, data);
  EXPECT_EQ(message(names), "tensor 'w' was added twice");
  blocks.add_tensor("w", kQ8_0, {2, 33}, data);
  EXPECT_NE(message(blocks).find("tensor 'w': rows of 33 elements"), std::string::npos) << message(blocks);
  type.add_tensor("w", kBool, {1}, data);
  EXPECT_NE(message(type).find("bool"), std::string::npos) << message(type);
  deep.add_tensor("w", kF32, {1, 1, 1, 1, 1}, data);
  EXPECT_NE(message(deep).find("rank 5, the limit is 4"), std::string::npos) << message(deep);
  alignment.add_u32("general.alignment", 3);
  EXPECT_NE(message(alignment).find("general.alignment is 3"), std::string::npos) << message(alignment);
}

TEST(GgufWriter, an_error_of_the_rows_names_the_tensor_and_leaves_no_file) {
  GgufWriter writer;
  writer.add_tensor("w", kF32, {4},
                    [](int64_t, int64_t, std::byte*) { return internal_error("out of ink"); });
  const std::string path = text(testing::TempDir(), getpid(), "-ink.gguf");
  EXPECT_EQ(writer.write(path).message(), "tensor 'w': out of ink");
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(GgufWriter, I60_a_full_disk_names_path_and_bytes_and_leaves_the_old_model) {
  const std::string path = text(testing::TempDir(), getpid(), "-full.gguf");
  const std::vector<float> data(1 << 20, 1.0f);
  GgufWriter small, large;
  small.add_u32("version.of.test", 1);
  large.add_tensor("w", kF32, {1 << 20}, data.data());
  ASSERT_TRUE(small.write(path).ok());
  const auto previous_signal = std::signal(SIGXFSZ, SIG_IGN);
  rlimit previous;
  getrlimit(RLIMIT_FSIZE, &previous);
  const rlimit limit = {1 << 20, previous.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status status = large.write(path);
  setrlimit(RLIMIT_FSIZE, &previous);
  std::signal(SIGXFSZ, previous_signal);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message().find(path + ": cannot write "), 0u) << status.message();
  EXPECT_NE(status.message().find("1048576 bytes were written"), std::string::npos) << status.message();
  const auto old = GgufFile::open(path);
  ASSERT_TRUE(old.ok()) << old.status().message();
  EXPECT_TRUE(old->has("version.of.test"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace ridge
