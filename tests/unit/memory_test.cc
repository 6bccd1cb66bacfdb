#include "base/memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernel_files.h"

namespace ridge {
namespace {

class Memory : public KernelFiles {
 protected:
  MemoryRoom room() {
    const auto out = memory_room(root_ + "/proc", root_ + "/cgroup");
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? *out : MemoryRoom{-1, ""};
  }
};

TEST_F(Memory, without_groups_the_machine_binds) {
  put("/proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:    1000 kB\n");
  EXPECT_EQ(room().bytes, 1024000);
  EXPECT_EQ(room().why, "the machine's available memory");
}

TEST_F(Memory, I61_the_tightest_group_above_the_process_binds) {
  put("/proc/meminfo", "MemAvailable:    10000000 kB\n");
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/cgroup/a/b/memory.max", "max\n");
  put("/cgroup/a/b/memory.current", "500\n");
  put("/cgroup/a/memory.max", "1048576\n");
  put("/cgroup/a/memory.current", "1000000\n");
  put("/cgroup/a/memory.stat", "anon 5\nfile 900000\ninactive_file 500000\nactive_file 400000\n");
  EXPECT_EQ(room().bytes, 1048576 - 100000) << "page cache counts as free";
  EXPECT_EQ(room().why, "memory.max of cgroup /a is 1.00 MiB");
}

TEST_F(Memory, I61_groups_of_version_1_bind) {
  put("/proc/meminfo", "MemAvailable:    10000000 kB\n");
  put("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/not/mounted/here\n0::/\n");
  put("/cgroup/memory/memory.limit_in_bytes", "4096000\n");
  put("/cgroup/memory/memory.usage_in_bytes", "5000000\n");
  EXPECT_EQ(room().bytes, 0);
  put("/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(room().bytes, 10240000000);
}

TEST_F(Memory, an_unknown_room_is_an_error_of_its_own) {
  EXPECT_EQ(memory_room(root_ + "/proc", root_).status().code(), Code::kNotFound);
}

TEST(MemoryCheck, I61_a_plan_beyond_the_room_is_refused_with_both_numbers) {
  EXPECT_TRUE(check_memory(4096, "a page").ok());
  const Status status = check_memory(std::numeric_limits<int64_t>::max(), "the plan");
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message().find("the plan takes 9223372036854775807 bytes"), 0u) << status.message();
  EXPECT_NE(status.message().find("can be taken: "), std::string::npos) << status.message();
}

}  // namespace
}  // namespace ridge
