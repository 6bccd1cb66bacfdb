#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "kernel_files.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {
namespace {

TEST(Cores, K45_an_affinity_mask_of_one_core_gives_one_thread) {
  // In a thread of its own: the mask is a thread's.
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      EXPECT_EQ(allowed_cores(), 1) << "bound to processor " << cpu;
      const auto device = CpuDevice::create({});
      ASSERT_TRUE(device.ok()) << device.status().message();
      EXPECT_EQ((*device)->team().threads(), 1);
    }
  }).join();
}

/// allowed_cores() in a made-up machine: as many processors as this thread may use, each a core of its own
/// unless said otherwise.
class Quota : public KernelFiles {
 protected:
  int cores() const { return allowed_cores({root_ + "/proc", root_ + "/cgroup", root_ + "/processors"}); }
  static int processors() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    EXPECT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    return CPU_COUNT(&mask);
  }
  void expect(double quota, const std::string& what) const {
    EXPECT_EQ(cores(), std::max(1, std::min(processors(), static_cast<int>(quota)))) << what;
  }
};

TEST_F(Quota, K45_without_a_quota_every_core_of_the_mask_counts) {
  EXPECT_EQ(cores(), processors()) << "no groups at all";
  put("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(cores(), processors()) << "a group that says nothing";
  put("/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), processors());
}

TEST_F(Quota, K45_a_quota_of_one_and_a_half_cores_gives_one_thread) {
  put("/proc/self/cgroup", "0::/\n");
  for (const auto& [line, quota] : {std::pair{"150000 100000\n", 1.5},
                                    {"100000 100000\n", 1.0},
                                    {"99999 100000\n", 0.0},
                                    {"1000 1000000\n", 0.0},
                                    {"200000 100000\n", 2.0},
                                    {"250000 100000\n", 2.5},
                                    {"75000 50000\n", 1.5},
                                    {"10000000000 100000\n", 1e5},
                                    {"150000\n", 1.5}}) {
    put("/cgroup/cpu.max", line);
    expect(quota, line);
  }
}

TEST_F(Quota, K45_the_tightest_group_above_the_process_binds) {
  put("/proc/self/cgroup", "0::/user.slice/work.scope\n");
  put("/cgroup/user.slice/work.scope/cpu.max", "max 100000\n");
  expect(1e9, "no group has a quota");
  put("/cgroup/user.slice/cpu.max", "120000 100000\n");
  expect(1.2, "the group above has one");
  put("/cgroup/user.slice/cpu.max", "max 100000\n");
  put("/cgroup/user.slice/work.scope/cpu.max", "190000 100000\n");
  expect(1.9, "the group itself has one");
}

TEST_F(Quota, K45_groups_of_version_1_bind) {
  // In a container the path is the machine's, and its group stands at the mount.
  put("/proc/self/cgroup", "5:memory:/\n4:cpu,cpuacct:/docker/0123\n0::/\n");
  put("/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  expect(1e9, "-1 is no quota");
  put("/cgroup/cpu/cpu.cfs_quota_us", "75000\n");
  put("/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  expect(1.5, "75000 of 50000");
}

TEST_F(Quota, K45_what_is_no_quota_is_none) {
  put("/proc/self/cgroup", "0::/\nnonsense\n:\n");
  for (const char* line : {"", "\n", "x y\n", "-5 100000\n", "0 100000\n", "99999999999999999999 1\n"}) {
    put("/cgroup/cpu.max", line);
    expect(1e9, line);
  }
  put("/cgroup/cpu.max", "300000 0\n");  // no division by it
  expect(300000, "a period of 0");
}

TEST_F(Quota, K45_hyper_threads_of_one_core_count_once) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    put(text("/processors/cpu", cpu, "/topology/physical_package_id"), "0\n");
    put(text("/processors/cpu", cpu, "/topology/core_id"), "3\n");
  }
  EXPECT_EQ(cores(), 1);
  int sockets = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask))
      put(text("/processors/cpu", cpu, "/topology/physical_package_id"), text(sockets++, "\n"));
  EXPECT_EQ(cores(), processors()) << "the same core number in another socket is another core";
}

TEST(Cores, K45_the_default_is_what_is_allowed_and_an_option_wins) {
  const auto usual = CpuDevice::create({});
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ((*usual)->team().threads(), allowed_cores());
  EXPECT_EQ(CpuDevice::create({.threads = 5}).take()->team().threads(), 5);
}

TEST(Cores, K45_impossible_thread_counts_are_refused_with_the_value) {
  for (const int bad : {-1, 100000}) {
    const auto device = CpuDevice::create({.threads = bad});
    ASSERT_FALSE(device.ok()) << bad;
    EXPECT_EQ(device.status().code(), Code::kInvalidArgument);
    EXPECT_NE(device.status().message().find(text("threads is ", bad)), std::string::npos)
        << device.status().message();
  }
}

}  // namespace
}  // namespace ridge
