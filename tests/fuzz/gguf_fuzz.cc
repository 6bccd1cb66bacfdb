// Any bytes as a GGUF file: refused with one line, or every view into it is sound.

#include <vector>

#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "fuzz/seeds.h"

namespace ridge {
namespace {

// Small files of every kind of record and of several tensor types.
std::vector<std::string> seeds() {
  static const std::vector<uint8_t> kData(4096, 0x3c);
  GgufWriter model;
  model.add_string("general.architecture", "llama");
  model.add_u32("general.alignment", 32);
  model.add_i32("i32", -1);
  model.add_u64("u64", 1ull << 40);
  model.add_f32("f32", 0.5f);
  model.add_bool("bool", true);
  const std::vector<std::string> tokens = {"a", "bc", ""};
  model.add_string_array("tokens", tokens);
  const std::vector<float> scores = {1, 2};
  model.add_f32_array("scores", scores);
  const std::vector<int32_t> kinds = {1, 2, 3};
  model.add_i32_array("kinds", kinds);
  const std::string one("\1\0\0\0\0\0\0\0", 8), array("\x09\0\0\0", 4), byte("\0\0\0\0", 4);
  model.add_encoded("nested", GgufType::kArray, array + one + array + one + byte + one + "x");
  model.add_tensor("norm", kF32, {8}, kData.data());
  model.add_tensor("q8", kQ8_0, {2, 32}, kData.data());
  model.add_tensor("q4_k", kQ4_K, {2, 256}, kData.data());
  model.add_tensor("experts", kBF16, {2, 2, 2, 4}, kData.data());
  GgufWriter metadata;
  metadata.add_f32("eps", 1e-5f);
  std::vector<std::string> out;
  for (const uint32_t version : {2u, 3u}) {
    out.push_back(*model.bytes(version));
    out.push_back(*metadata.bytes(version));
  }
  out.push_back(*GgufWriter().bytes());
  out.push_back("version https://git-lfs.github.com/spec/v1\n");
  return out;
}

void check_entries(const GgufFile& file) {
  for (const GgufEntry& entry : file.entries()) {
    RIDGE_FUZZ_CHECK(file.entry(entry.key) == &entry);
    RIDGE_FUZZ_CHECK(!gguf_entry_type(entry).empty() && !gguf_entry_text(entry).empty());
    int answers = file.get_u64(entry.key).ok() || file.get_i64(entry.key).ok();
    answers += file.get_f32(entry.key).ok();
    answers += file.get_bool(entry.key).ok();
    answers += file.get_string(entry.key).ok();
    answers += file.get_f32_array(entry.key).ok();
    answers += file.get_i32_array(entry.key).ok();
    answers += file.get_bool_array(entry.key).ok();
    size_t bytes = 0;
    if (const auto strings = file.get_string_array(entry.key); strings.ok()) {
      ++answers;
      for (const std::string_view s : *strings)
        for (const char c : s) bytes += c != 0;
    }
    RIDGE_FUZZ_CHECK(bytes <= file.file_bytes());
    RIDGE_FUZZ_CHECK(answers <= 1);  // a value has one type
  }
}

void check_tensors(const GgufFile& file) {
  int64_t end = file.data_offset();
  for (const GgufTensor& tensor : file.tensors()) {
    RIDGE_FUZZ_CHECK(file.find_tensor(tensor.name) == &tensor);
    RIDGE_FUZZ_CHECK(tensor.bytes >= 0 && tensor.offset >= end && tensor.offset % file.alignment() == 0);
    end = tensor.offset + tensor.bytes;
    RIDGE_FUZZ_CHECK(tensor.bytes == 0 || end <= static_cast<int64_t>(file.file_bytes()));
    std::vector<std::byte> data(static_cast<size_t>(tensor.bytes));
    RIDGE_FUZZ_CHECK(file.read(tensor, data.data()).ok());
    if (!file.tensor(tensor.name).ok()) continue;
    const auto bytes = tensor_bytes(*tensor.type->dtype, tensor.shape);
    RIDGE_FUZZ_CHECK(bytes.ok() && *bytes == tensor.bytes);
  }
}

}  // namespace
}  // namespace ridge

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ridge::write_seeds(*argc, *argv, ridge::seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = ridge::GgufFile::open_memory(std::as_bytes(std::span(data, size)), "input.gguf");
  if (!file.ok()) {
    const std::string& message = file.status().message();
    RIDGE_FUZZ_CHECK(message.find("input.gguf: ") == 0 && message.find('\n') == std::string::npos);
    RIDGE_FUZZ_CHECK(message.size() < 1000);
    return 0;
  }
  ridge::check_entries(*file);
  ridge::check_tensors(*file);
  return 0;
}
