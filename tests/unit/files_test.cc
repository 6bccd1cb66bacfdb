#include "base/files.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace ridge {
namespace {

/// A folder of its own, removed with what is in it.
class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "ridge-files-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~Files() override {
    for (const std::string& name : names()) unlink(at(name).c_str());
    rmdir(folder_.c_str());
  }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    DIR* const open = opendir(folder_.c_str());
    while (const dirent* entry = readdir(open))
      if (entry->d_name[0] != '.') out.push_back(entry->d_name);
    closedir(open);
    return out;
  }
  std::string folder_;
};

// Writes past `bytes` fail with EFBIG: the disk-full of a test that may not fill a disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_signal_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit = {bytes, previous_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    signal(SIGXFSZ, previous_signal_);
  }

 private:
  rlimit previous_;
  void (*previous_signal_)(int);
};

TEST_F(Files, what_is_written_is_read_back) {
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(write_file_atomically(at("f"), content).ok());
  EXPECT_EQ(*read_file(at("f"), 4), content);
  ASSERT_TRUE(write_file_atomically(at("f"), "").ok());
  EXPECT_EQ(*read_file(at("f"), 0), "");
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_F(Files, a_file_above_the_limit_is_refused_with_both_numbers) {
  ASSERT_TRUE(write_file_atomically(at("f"), "12345").ok());
  const auto read = read_file(at("f"), 4);
  EXPECT_EQ(read.status().code(), Code::kResourceExhausted);
  EXPECT_EQ(read.status().message(), at("f") + " has 5 bytes, the limit is 4");
}

TEST_F(Files, I60_a_full_disk_names_path_and_bytes_and_leaves_the_old_file) {
  ASSERT_TRUE(write_file_atomically(at("report"), "old").ok());
  const std::string large(3 << 20, 'x');
  Status status;
  {
    const FileSizeLimit limit(1 << 20);
    status = write_file_atomically(at("report"), large);
  }
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message().find(at("report") + ": cannot write 2097152 bytes at byte 1048576"), 0u)
      << status.message();
  EXPECT_EQ(*read_file(at("report"), 100), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"report"}) << "what was written aside is still there";
}

TEST_F(Files, I60_an_unfinished_file_leaves_the_old_one) {
  ASSERT_TRUE(write_file_atomically(at("f"), "old").ok());
  {
    auto file = OutputFile::create(at("f"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(std::string(2 << 20, 'x')).ok());
    EXPECT_EQ(file->position(), 2 << 20);
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(*read_file(at("f"), 100), "old");
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(Files, small_and_large_writes_keep_their_order) {
  std::string all;
  auto file = OutputFile::create(at("f"));
  ASSERT_TRUE(file.ok());
  for (const size_t size : {1u, 1000u, 2000000u, 3u, 1048576u, 0u, 7u, 1048575u, 2u}) {
    const std::string part(size, static_cast<char>('a' + all.size() % 26));
    all += part;
    ASSERT_TRUE(file->write(part).ok());
  }
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(file->commit().code(), Code::kInternal);
  EXPECT_TRUE(*read_file(at("f"), 100 << 20) == all);
}

TEST_F(Files, mode_and_link_of_the_target_survive) {
  ASSERT_TRUE(write_file_atomically(at("f"), "old").ok());
  ASSERT_EQ(chmod(at("f").c_str(), 0640), 0);
  ASSERT_EQ(symlink("f", at("link").c_str()), 0);
  ASSERT_TRUE(write_file_atomically(at("link"), "new").ok());
  struct stat facts;
  ASSERT_EQ(lstat(at("link").c_str(), &facts), 0);
  EXPECT_TRUE(S_ISLNK(facts.st_mode));
  ASSERT_EQ(lstat(at("f").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
  EXPECT_EQ(*read_file(at("f"), 100), "new");
}

TEST_F(Files, absent_folders_and_devices_are_refused) {
  EXPECT_EQ(write_file_atomically(at("no/such/f"), "x").code(), Code::kIo);
  EXPECT_NE(write_file_atomically(at("no/such/f"), "x").message().find(at("no/such/f")), std::string::npos);
  EXPECT_EQ(write_file_atomically("/dev/null", "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(write_file_atomically(folder_, "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(read_file(folder_, 100).status().code(), Code::kIo);
  EXPECT_EQ(read_file(at("absent"), 100).status().code(), Code::kNotFound);
}

TEST_F(Files, a_pipe_without_a_writer_is_refused_without_waiting) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(InputFile::open(at("pipe")).status().message(), at("pipe") + " is a pipe, not a file");
}

TEST_F(Files, reads_outside_the_file_are_refused) {
  ASSERT_TRUE(write_file_atomically(at("f"), "12345").ok());
  const auto file = InputFile::open(at("f"));
  ASSERT_TRUE(file.ok());
  char out[8] = {};
  EXPECT_TRUE(file->read(1, 4, out).ok());
  EXPECT_EQ(std::string(out), "2345");
  EXPECT_TRUE(file->read(5, 0, out).ok());
  for (const auto& [offset, count] : {std::pair<uint64_t, uint64_t>{1, 5}, {6, 0}, {~0ull, 2}, {2, ~0ull}})
    EXPECT_EQ(file->read(offset, count, out).code(), Code::kInvalidArgument) << offset << " + " << count;
}

}  // namespace
}  // namespace ridge
