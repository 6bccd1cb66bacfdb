// A verdict takes ceilings of as many threads as ran, or none.

#include "lab/ceilings.h"

#include <gtest/gtest.h>

#include "account/flat_machine.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {
namespace {

TEST(Ceilings, are_taken_only_where_they_were_measured_with_as_many_threads) {
  Machine machine = flat_machine(1e10, 1e11);
  machine.by_threads.push_back(machine.by_threads.front());
  machine.by_threads.back().threads = 4;
  for (const int threads : {1, 2, 3, 4, 5}) {
    CpuOptions options;
    options.threads = threads;
    const auto device = CpuDevice::create(options);
    ASSERT_TRUE(device.ok()) << device.status().message();
    const Status taken = check_ceilings(machine, **device, "FILE");
    if (threads == 1 || threads == 4) {
      EXPECT_TRUE(taken.ok()) << taken.message();
      continue;
    }
    EXPECT_EQ(taken.code(), Code::kDeclined) << threads << " threads, and neither 1 nor 4 stand for them";
    const std::string said = text("FILE has ceilings of 1 and 4 threads, none of ", threads,
                                  ": measure them with 'ridge probe -t ", threads, " -o FILE'");
    EXPECT_NE(taken.message().find(said), std::string::npos) << taken.message();
  }
}

}  // namespace
}  // namespace ridge
