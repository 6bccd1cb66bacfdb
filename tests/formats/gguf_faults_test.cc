// I59: the n-th allocation or system call fails, for n = 1, 2, … until a run meets no fault. Each run gives
// an error or the right result, gives everything back, and leaves no half-written file.

#include "faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/files.h"
#include "formats/gguf.h"
#include "formats/gguf_writer.h"

namespace ridge {
namespace {

class GgufFaults : public testing::Test {
 protected:
  GgufFaults() : folder_(testing::TempDir() + "ridge-faults-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/m.gguf";
    writer_.add_string_array("tokens", std::vector<std::string>(1000, std::string(40, 't')));
  }
  ~GgufFaults() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  void add_tensor(const char* name, int64_t elements) {
    writer_.add_tensor(name, kF32, {elements}, [elements](int64_t, int64_t count, std::byte* out) {
      std::fill_n(reinterpret_cast<float*>(out), count * elements, 2.0f);
      return Status();
    });
  }

  std::string folder_, path_;
  GgufWriter writer_;
};

TEST_F(GgufFaults, I59_reading_gives_an_error_or_the_file) {
  if (!faults::kAvailable) GTEST_SKIP() << "the sanitizer needs the functions that would fail";
  constexpr int64_t kElements = 5 << 20;  // 20 MiB: enough for a second thread
  add_tensor("w", kElements);
  ASSERT_TRUE(writer_.write(path_).ok());
  bool opened = false, got_tokens = false;
  const auto attempt = [&] {
    const auto file = GgufFile::open(path_);
    if (!file.ok()) return false;
    opened = true;
    const auto tokens = file->get_string_array("tokens");
    if (!tokens.ok()) return false;
    got_tokens = true;
    const auto data = file->read_all(2);
    if (!data.ok()) return false;
    return tokens->size() == 1000 && file->view(file->tensors()[0], *data).as<float>()[kElements - 1] == 2.0f;
  };
  EXPECT_GE(faults::each_fault(attempt, [](bool) {}), 12);
  EXPECT_TRUE(opened && got_tokens);
}

TEST_F(GgufFaults, I59_writing_leaves_the_old_file_or_the_new_one) {
  if (!faults::kAvailable) GTEST_SKIP() << "the sanitizer needs the functions that would fail";
  add_tensor("w", 1 << 20);
  ASSERT_TRUE(write_file_atomically(path_, "old").ok());
  const int alone = faults::entries_of(folder_);
  const auto whole = writer_.bytes();
  ASSERT_TRUE(whole.ok());
  const auto after = [&](bool written) {
    EXPECT_EQ(faults::entries_of(folder_), alone) << "a file is left aside";
    const auto content = read_file(path_, 100 << 20);
    ASSERT_TRUE(content.ok());
    EXPECT_TRUE(*content == (written ? *whole : "old")) << "written: " << written;
    ASSERT_TRUE(write_file_atomically(path_, "old").ok());
  };
  EXPECT_GE(faults::each_fault([&] { return writer_.write(path_).ok(); }, after), 16);
}

}  // namespace
}  // namespace ridge
