#pragma once
// A made-up /proc, /sys/fs/cgroup and /sys/devices/system/cpu.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ridge {

class KernelFiles : public testing::Test {
 protected:
  KernelFiles() : root_(testing::TempDir() + "ridge-kernel-XXXXXX") {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~KernelFiles() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, std::string_view content) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream out(root_ + path, std::ios::binary);
    out << content;
    EXPECT_TRUE(out.good()) << path;
  }
  std::string root_;
};

}  // namespace ridge
