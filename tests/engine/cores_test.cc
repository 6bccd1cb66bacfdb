#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

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
