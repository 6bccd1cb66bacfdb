// Clock and power of the processor. Case A33.

#include "runtime/cpu/core_state.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/backends.h"

namespace ridge {
namespace {

TEST(CoreState, A33_the_clock_is_that_of_a_processor) {
  const double mhz = core_clock_mhz();
  EXPECT_GT(mhz, 100) << "unoptimised, a sanitizer's build may show a part of it";
  EXPECT_LT(mhz, 10000) << "the additions were not done, or not in turn";
}

/// A folder like Linux's /sys/class/powercap.
class Powercap : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void zone(const std::string& name, double energy_uj) {
    std::filesystem::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "energy_uj") << static_cast<int64_t>(energy_uj) << "\n";
    std::ofstream(folder_ / name / "max_energy_range_uj") << 1000000000 << "\n";
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      (std::string("ridge_powercap_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Powercap, A33_power_is_the_energy_of_all_packages_over_the_time_between_readings) {
  zone("intel-rapl:0", 1e6), zone("intel-rapl:1", 999e6);
  zone("intel-rapl:0:0", 0), zone("intel-rapl-mmio:0", 0), zone("intel-rapl", 0);
  PackagePower power(folder_);
  EXPECT_EQ(power.watts(1'000'000'000), std::nullopt) << "nothing was before";
  // 20 J of one; 9 J of the other, whose counter goes to 1000 J.
  zone("intel-rapl:0", 21e6), zone("intel-rapl:1", 8e6);
  zone("intel-rapl:0:0", 5e6), zone("intel-rapl-mmio:0", 20e6);
  const auto watts = power.watts(1'500'000'000);
  ASSERT_TRUE(watts.has_value());
  EXPECT_NEAR(*watts, 29 / 0.5, 1e-9);
  std::filesystem::remove(folder_ / "intel-rapl:1" / "energy_uj");
  EXPECT_EQ(power.watts(2'000'000'000), std::nullopt) << "one package alone is not the machine";
}

TEST_F(Powercap, A33_a_machine_without_counters_tells_no_power) {
  PackagePower power(folder_);
  EXPECT_EQ(power.watts(1), std::nullopt);
  EXPECT_EQ(power.watts(2), std::nullopt);
}

TEST(CoreState, A33_a_device_of_the_processor_tells_its_clock) {
  const auto device = create_device({});
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_TRUE(state_reader(**device)().clock_mhz.has_value());
}

}  // namespace
}  // namespace ridge
