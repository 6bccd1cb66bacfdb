// Files that lie: each is refused with one line that names file, place, value and limit, before memory is
// spent on it.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/files.h"
#include "base/limits.h"
#include "formats/gguf.h"
#include "formats/gguf_bytes.h"

namespace ridge {
namespace {

constexpr uint64_t kHuge = 1ull << 63;
constexpr uint32_t kStringType = 8, kArrayType = 9, kF32Type = 0;

// 1024 bytes: every kind of record, data up to the last byte.
std::string good_file() {
  GgufBytes b;
  b.header(2, 5).key("general.architecture", kStringType).str("llama").u32("llama.block_count", 2);
  b.key("tokens", kArrayType).put(kStringType).put<uint64_t>(3).str("a").str("bc").str("");
  b.key("flags", kArrayType)
      .put<uint32_t>(7)
      .put<uint64_t>(2)
      .raw(std::string("\0\1", 2))
      .key("eps", 6)
      .put(1e-5f);
  b.tensor("token_embd.weight", {64, 2}, kF32Type, 0).tensor("norm.weight", {32}, kF32Type, 512);
  b.pad_to_data();
  const size_t data = 512 + 128;
  EXPECT_LE(b.bytes().size() + data, 1024u);
  return b.data(data).bytes();
}

TEST(Gguf, I1_four_bytes_and_every_proper_prefix_are_truncated) {
  expect_refused("GGUF", Code::kCorrupt, {"truncated at byte 4"});
  const std::string good = good_file();
  ASSERT_TRUE(open_gguf(good).ok()) << open_gguf(good).status().message();
  for (size_t length = 0; length < good.size(); ++length) {
    expect_refused(std::string_view(good).substr(0, length), Code::kCorrupt,
                   {text("truncated at byte ", length)});
    ASSERT_FALSE(HasFailure()) << "prefix of " << length << " of " << good.size() << " bytes";
  }
}

TEST(Gguf, I2_counts_beyond_the_file_are_refused) {
  expect_refused(GgufBytes().header(kHuge, 0).bytes(), Code::kCorrupt,
                 {"9223372036854775808 tensors", "0 bytes are left"});
  expect_refused(GgufBytes().header(0, kHuge - 1).bytes(), Code::kCorrupt,
                 {"9223372036854775807 metadata records", "at least 13", "0 bytes are left"});
  // One more than what is left could hold, and the two counts together.
  expect_refused(GgufBytes().header(0, 2).data(25).bytes(), Code::kCorrupt,
                 {"2 metadata records", "25 bytes are left"});
  expect_refused(GgufBytes().header(1, 1).data(36).bytes(), Code::kCorrupt,
                 {"1 tensors", "23 bytes are left"});
}

TEST(Gguf, counts_beyond_the_limits_are_refused) {
  const uint64_t entries = limits::kGgufMetadataRecords + 1, tensors = limits::kGgufTensors + 1;
  expect_refused(GgufBytes().header(0, entries).data(entries * 13).bytes(), Code::kResourceExhausted,
                 {text(entries, " metadata records"), text("limit is ", limits::kGgufMetadataRecords)});
  expect_refused(GgufBytes().header(tensors, 0).data(tensors * 24).bytes(), Code::kResourceExhausted,
                 {text(tensors, " tensors"), text("limit is ", limits::kGgufTensors)});
}

TEST(Gguf, I3_lengths_beyond_the_file_are_refused) {
  for (const uint64_t length : {kHuge, uint64_t{18}, ~uint64_t{0}}) {  // 17 bytes follow the length
    const std::string claim = text("takes ", length, " bytes, 17 are left");
    expect_refused(GgufBytes().header(0, 1).put(length).data(17).bytes(), Code::kCorrupt,
                   {"metadata key 0", claim});
    expect_refused(GgufBytes().header(0, 1).key("name", kStringType).put(length).data(17).bytes(),
                   Code::kCorrupt, {"string of 'name'", claim});
    expect_refused(GgufBytes()
                       .header(0, 1)
                       .key("list", kArrayType)
                       .put(kStringType)
                       .put<uint64_t>(1)
                       .put(length)
                       .data(17)
                       .bytes(),
                   Code::kCorrupt, {"string of 'list'", claim});
    expect_refused(GgufBytes().header(1, 0).put(length).data(17).bytes(), Code::kCorrupt,
                   {"tensor name 0", claim});
  }
}

TEST(Gguf, I3_array_counts_beyond_the_file_are_refused) {
  struct {
    uint32_t type;
    uint64_t shortest;
  } const cases[] = {{0, 1}, {4, 4}, {12, 8}, {kStringType, 8}, {kArrayType, 12}};
  for (const auto& c : cases)
    for (const uint64_t count :
         {uint64_t{5}, kHuge, c.shortest == 1 ? kHuge + 1 : ~uint64_t{0} / c.shortest + 1, ~uint64_t{0}})
      expect_refused(GgufBytes()
                         .header(0, 1)
                         .key("list", kArrayType)
                         .put(c.type)
                         .put(count)
                         .data(5 * c.shortest - 1)
                         .bytes(),
                     Code::kCorrupt, {text("array 'list' claims ", count, " elements"), "truncated at"});
}

// One tensor of those dims and type, `data` bytes of data.
std::string one_tensor(std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset, size_t data) {
  return GgufBytes().header(1, 0).tensor("w", dims, type, offset).pad_to_data().data(data).bytes();
}

TEST(Gguf, I4_sizes_that_wrap_are_refused) {
  expect_refused(one_tensor({(1ull << 42) + 1, 1ull << 22}, 24, 0, 4194304), Code::kCorrupt,
                 {"tensor 'w'", "2^63"});
  expect_refused(one_tensor({1ull << 32, 1ull << 32}, 24, 0, 0), Code::kCorrupt,
                 {"tensor 'w'", "4294967296", "2^63"});
  expect_refused(one_tensor({~0ull}, 24, 0, 32), Code::kCorrupt, {"tensor 'w'", "18446744073709551615"});
  expect_refused(one_tensor({1ull << 62}, kF32Type, 0, 32), Code::kCorrupt,
                 {"tensor 'w'", "f32", "2^63 bytes"});
  // No elements, but strides that wrap. Found by fuzzing.
  expect_refused(one_tensor({4, 1ull << 40, 0, 1ull << 40}, 30, 0, 32), Code::kCorrupt,
                 {"tensor 'w'", "2^63"});
  expect_refused(one_tensor({1ull << 62, 0}, kF32Type, 0, 32), Code::kCorrupt, {"tensor 'w'", "2^63 bytes"});
  // 2^62 bytes each: one by one they fit 64 bits, their sum wraps to 0.
  GgufBytes b;
  b.header(4, 0);
  for (const uint64_t i : {0, 1, 2, 3}) b.tensor(text("w", i), {1ull << 62}, 24, i << 62);
  expect_refused(b.pad_to_data().data(64).bytes(), Code::kCorrupt,
                 {"'w0'", "4611686018427387904", "has 64 bytes"});
  // Offset + size wraps to a place inside the file.
  expect_refused(one_tensor({64}, 24, ~0ull - 31, 64), Code::kCorrupt,
                 {"'w'", "offset 18446744073709551584"});
}

TEST(Gguf, I5_data_that_ends_beyond_the_file_is_refused) {
  ASSERT_TRUE(open_gguf(one_tensor({33}, 24, 0, 33)).ok());
  expect_refused(one_tensor({33}, 24, 0, 32), Code::kCorrupt,
                 {"truncated at", "'w'", "takes 33 bytes", "has 32 bytes"});
  expect_refused(one_tensor({33}, 24, 32, 64), Code::kCorrupt, {"truncated at", "'w'", "offset 32"});
  expect_refused(one_tensor({0}, 24, 64, 32), Code::kCorrupt, {"'w'", "offset 64"});
}

TEST(Gguf, I6_duplicates_and_shared_bytes_name_both) {
  expect_refused(GgufBytes().header(0, 3).u32("k", 1).u32("other", 2).u32("k", 1).bytes(), Code::kCorrupt,
                 {"key 'k' occurs twice", "records 0 and 2"});
  const auto two = [](std::string_view second, uint64_t offset) {
    GgufBytes b;
    b.header(3, 0).tensor("a", {40}, 24, 0).tensor("b", {40}, 24, 64).tensor(second, {40}, 24, offset);
    return b.pad_to_data().data(256).bytes();
  };
  ASSERT_TRUE(open_gguf(two("c", 128)).ok());
  expect_refused(two("a", 128), Code::kCorrupt, {"tensor 'a' occurs twice", "tensors 0 and 2"});
  expect_refused(two("c", 64), Code::kCorrupt, {"'b'", "'c'", "share bytes"});
  expect_refused(two("c", 96), Code::kCorrupt, {"'b'", "'c'", "share bytes"});
  expect_refused(two("c", 0), Code::kCorrupt, {"'a'", "'c'", "share bytes"});
}

TEST(Gguf, unaligned_and_misordered_tensors_are_refused) {
  expect_refused(one_tensor({8}, 24, 16, 64), Code::kCorrupt, {"'w'", "offset 16", "alignment 32"});
  GgufBytes b;
  b.header(2, 0).tensor("second", {8}, 24, 32).tensor("first", {8}, 24, 0).pad_to_data().data(64);
  expect_refused(b.bytes(), Code::kCorrupt, {"'first'", "'second'", "order"});
}

TEST(Gguf, I7_unknown_types_are_refused) {
  for (const uint32_t type : {~0u, 1000000u, 4u, 31u, 36u})
    expect_refused(one_tensor({32}, type, 0, 1024), Code::kCorrupt, {"tensor 'w'", text("type ", type)});
  for (const uint32_t type : {256u, 13u, ~0u}) {
    expect_refused(GgufBytes().header(0, 1).key("k", type).data(8).bytes(), Code::kCorrupt,
                   {"'k'", text("type ", type)});
    expect_refused(GgufBytes().header(0, 1).key("k", kArrayType).put(type).put<uint64_t>(0).bytes(),
                   Code::kCorrupt, {"'k'", text("type ", type)});
  }
  GgufBytes b;
  b.header(0, 1)
      .key("tokenizer.ggml.tokens", kArrayType)
      .put<uint32_t>(6)
      .put<uint64_t>(2)
      .put(1.0f)
      .put(2.0f);
  const auto file = open_gguf(b.bytes());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->get_string_array("tokenizer.ggml.tokens").status().message(),
            "model.gguf: key 'tokenizer.ggml.tokens' is array of f32, wanted array of string");
  EXPECT_EQ(file->get_i32_array("tokenizer.ggml.tokens").status().message(),
            "model.gguf: key 'tokenizer.ggml.tokens' is array of f32, wanted array of i32");
}

TEST(Gguf, rows_of_broken_blocks_and_too_many_dimensions_are_refused) {
  expect_refused(one_tensor({33}, 8, 0, 64), Code::kCorrupt, {"'w'", "33 elements", "q8_0", "32"});
  expect_refused(one_tensor({128, 2}, 12, 0, 288), Code::kCorrupt, {"'w'", "128 elements", "q4_k", "256"});
  expect_refused(one_tensor({1, 1, 1, 1, 1}, 24, 0, 64), Code::kCorrupt,
                 {"'w'", "5 dimensions", "limit is 4"});
  expect_refused(GgufBytes().header(1, 0).str("w").put(~0u).data(64).bytes(), Code::kCorrupt,
                 {"4294967295 dimensions"});
}

TEST(Gguf, foreign_files_are_named) {
  const auto is = [](std::string_view bytes, std::string_view what) {
    expect_refused(bytes, Code::kCorrupt, {what});
  };
  is("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 98362432\n", "is a Git LFS pointer");
  is("\n<!DOCTYPE html><html><body>Sign in</body></html>", "is an HTML page");
  is("<HTML>", "is an HTML page");
  is("{\"error\":\"not found\"}", "is JSON text");
  is(std::string_view("PK\x03\x04\0\0", 6), "is a zip archive");
  is(std::string_view("\x40\0\0\0\0\0\0\0{\"w\":", 13), "is a safetensors file");
  is("FUGG....", "starts with 'FUGG'");
  is(std::string(1024, '\0'), "is not a GGUF file");
}

TEST(Gguf, other_versions_and_byte_orders_are_declined_by_name) {
  const auto is = [](uint32_t version, std::string_view what) {
    expect_refused(GgufBytes().header(0, 0, version).bytes(), Code::kDeclined, {what});
  };
  is(1, "GGUF version 1");
  is(4, "GGUF version 4");
  is(0, "GGUF version 0");
  is(0x03000000, "big-endian");
}

TEST(Gguf, alignments_that_are_no_power_of_two_in_range_are_refused) {
  for (const uint32_t alignment : {0u, 3u, 4u, 48u, 131072u, 1u << 31})
    expect_refused(GgufBytes().header(0, 1).u32("general.alignment", alignment).bytes(), Code::kCorrupt,
                   {text("general.alignment is ", alignment), "8 to 65536"});
  expect_refused(GgufBytes().header(0, 1).key("general.alignment", 10).put(kHuge).bytes(), Code::kCorrupt,
                 {"general.alignment is 9223372036854775808"});
  expect_refused(GgufBytes().header(0, 1).key("general.alignment", kStringType).str("32").bytes(),
                 Code::kCorrupt, {"general.alignment is string, wanted u32"});
}

TEST(Gguf, names_must_be_text) {
  const auto with_key = [](std::string_view key) { return GgufBytes().header(0, 1).u32(key, 1).bytes(); };
  expect_refused(with_key(std::string_view("a\0b", 3)), Code::kCorrupt, {"'a\\x00b'", "zero byte"});
  expect_refused(with_key("a\xff"), Code::kCorrupt, {"'a\\xff'", "not UTF-8"});
  expect_refused(with_key("\xc0\x80"), Code::kCorrupt, {"not UTF-8"});      // an overlong zero
  expect_refused(with_key("\xed\xa0\x80"), Code::kCorrupt, {"not UTF-8"});  // a surrogate
  expect_refused(with_key(""), Code::kCorrupt, {"metadata key 0", "is empty"});
  expect_refused(with_key(std::string(limits::kGgufNameBytes + 1, 'k')), Code::kResourceExhausted,
                 {text(limits::kGgufNameBytes + 1), text("limit is ", limits::kGgufNameBytes)});
  EXPECT_TRUE(open_gguf(with_key("\xc3\xa9")).ok());
  expect_refused(GgufBytes().header(1, 0).tensor("w\n", {}, kF32Type, 0).bytes(), Code::kCorrupt,
                 {"'w\\x0a'"});
  expect_refused(GgufBytes().header(1, 0).tensor("w\xff", {}, kF32Type, 0).bytes(), Code::kCorrupt,
                 {"not UTF-8"});
}

TEST(Gguf, bools_are_0_or_1) {
  expect_refused(GgufBytes().header(0, 1).key("b", 7).put<uint8_t>(2).bytes(), Code::kCorrupt,
                 {"bool 'b'", "is 2"});
  expect_refused(GgufBytes()
                     .header(0, 1)
                     .key("b", kArrayType)
                     .put<uint32_t>(7)
                     .put<uint64_t>(3)
                     .raw(std::string("\0\1\xff", 3))
                     .bytes(),
                 Code::kCorrupt, {"bool 'b'", "is 255"});
}

// Arrays of arrays, `depth` in all, the innermost of one byte.
std::string nested(uint64_t depth) {
  GgufBytes b;
  b.header(0, 1).key("deep", kArrayType);
  for (uint64_t i = 1; i < depth; ++i) b.put(kArrayType).put<uint64_t>(1);
  return b.put<uint32_t>(0).put<uint64_t>(1).put<uint8_t>(7).bytes();
}

TEST(Gguf, nested_arrays_are_read_to_the_limit_and_refused_beyond) {
  const auto file = open_gguf(nested(limits::kGgufArrayDepth));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->entry("deep")->element, GgufType::kArray);
  EXPECT_EQ(gguf_entry_text(*file->entry("deep")), "[1 of array]");
  EXPECT_FALSE(file->get_i32_array("deep").ok());
  for (const uint64_t depth : {limits::kGgufArrayDepth + 1, uint64_t{100000}})
    expect_refused(nested(depth), Code::kResourceExhausted,
                   {"'deep'", "nested", text(limits::kGgufArrayDepth)});
}

TEST(Gguf, directories_pipes_and_absent_files_are_refused_without_waiting) {
  EXPECT_EQ(GgufFile::open("no/such.gguf").status().code(), Code::kNotFound);
  EXPECT_EQ(GgufFile::open("no/such.gguf").status().message(), "no/such.gguf: no such file");
  const std::string folder = testing::TempDir();
  EXPECT_NE(GgufFile::open(folder).status().message().find("is a directory"), std::string::npos);
  EXPECT_NE(GgufFile::open("/dev/zero").status().message().find("is a device"), std::string::npos);
  EXPECT_FALSE(GgufFile::open(std::string("a\0b", 3)).ok());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Runs `body` in a child whose address space may grow by `bytes`; whether it came back true.
template <class Body>
bool within_memory(uint64_t bytes, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    unsigned long pages = 0;
    FILE* const statm = std::fopen("/proc/self/statm", "r");
    if (statm == nullptr || std::fscanf(statm, "%lu", &pages) != 1) _exit(2);
    std::fclose(statm);
    const rlim_t limit = pages * 4096ul + bytes;
    const rlimit both = {limit, limit};
    if (setrlimit(RLIMIT_AS, &both) != 0) _exit(3);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Gguf, opening_takes_no_more_than_the_file_and_64_MiB) {
  constexpr uint64_t kSlack = 64 << 20;
  ASSERT_FALSE(within_memory(kSlack, [] { return Buffer::allocate(128 << 20).ok(); }))
      << "the measure measures nothing";
  GgufBytes tensors;  // the most, and the smallest
  tensors.header(limits::kGgufTensors, 0);
  for (uint64_t i = 0; i < limits::kGgufTensors; ++i) tensors.tensor(text(i), {}, 24, 32 * i);
  tensors.pad_to_data().data(32 * limits::kGgufTensors);
  EXPECT_TRUE(
      within_memory(tensors.bytes().size() + kSlack, [&] { return open_gguf(tensors.bytes()).ok(); }));
  GgufBytes entries;
  entries.header(0, limits::kGgufMetadataRecords);
  for (uint64_t i = 0; i < limits::kGgufMetadataRecords; ++i) entries.key(text(i), 0).put<uint8_t>(1);
  EXPECT_TRUE(
      within_memory(entries.bytes().size() + kSlack, [&] { return open_gguf(entries.bytes()).ok(); }));
  GgufBytes strings;  // 8 bytes of file for a view of 16
  strings.header(0, 1).key("s", kArrayType).put(kStringType).put<uint64_t>(limits::kVocabulary);
  strings.data(8 * static_cast<size_t>(limits::kVocabulary));
  EXPECT_TRUE(within_memory(strings.bytes().size() + kSlack, [&] {
    const auto file = open_gguf(strings.bytes());
    return file.ok() && file->get_string_array("s").ok();
  }));
}
#endif

}  // namespace
}  // namespace ridge
