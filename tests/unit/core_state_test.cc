// Clock and power of the processor. Case A33.

#include "runtime/cpu/core_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "account/recorder.h"
#include "runtime/backends.h"

namespace ridge {
namespace {

/// The clock by another instruction: products of 64 bits that wait for each other take 3 cycles each on every
/// x86-64 core that has AVX2 (and more on those before). 0 on other processors.
double clock_by_products_mhz() {
#if defined(__x86_64__)
  constexpr int kRounds = 1024, kProducts = 64;
  uint64_t product = 3;
  const int64_t begin = now_ns();
  for (int round = 0; round < kRounds; ++round)
    asm volatile(".rept 64\n\timul %0, %0\n\t.endr" : "+r"(product) : : "cc");
  const auto ns = static_cast<double>(std::max<int64_t>(now_ns() - begin, 1));
  return 3 * double(kRounds * kProducts) / ns * 1e3;
#else
  return 0;
#endif
}

TEST(CoreState, A33_the_clock_is_that_of_a_processor) {
  // The best of several, in turns: what interrupts a chain only makes it slower.
  double mhz = 0, other = 0;
  for (int i = 0; i < 20; ++i)
    mhz = std::max(mhz, core_clock_mhz()), other = std::max(other, clock_by_products_mhz());
  if (other == 0) GTEST_SKIP() << "nothing to compare " << mhz << " MHz with";
  EXPECT_LT(mhz, 1.2 * other) << "the additions were not done, or not in turn";
#ifdef NDEBUG
  EXPECT_GT(mhz, other / 1.2) << "additions took more than a cycle";
#endif
}

/// A folder like Linux's /sys/class/powercap.
class Powercap : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void zone(const std::string& name, double energy_uj, const std::string& called = "package-0") {
    std::filesystem::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "name") << called << "\n";
    std::ofstream(folder_ / name / "energy_uj") << static_cast<int64_t>(energy_uj) << "\n";
    std::ofstream(folder_ / name / "max_energy_range_uj") << 1000000000 << "\n";
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      (std::string("ridge_powercap_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Powercap, A33_power_is_the_energy_of_all_packages_over_the_time_between_readings) {
  zone("intel-rapl:0", 1e6), zone("intel-rapl:1", 999e6, "package-1");
  zone("intel-rapl:0:0", 0, "core"), zone("intel-rapl-mmio:0", 0), zone("intel-rapl", 0);
  PackagePower power(folder_);
  EXPECT_EQ(power.watts(1'000'000'000), std::nullopt) << "nothing was before";
  // 20 J of one; 9 J of the other, whose counter goes to 1000 J.
  zone("intel-rapl:0", 21e6), zone("intel-rapl:1", 8e6, "package-1");
  zone("intel-rapl:0:0", 5e6, "core"), zone("intel-rapl-mmio:0", 20e6);
  const auto watts = power.watts(1'500'000'000);
  ASSERT_TRUE(watts.has_value());
  EXPECT_NEAR(*watts, 29 / 0.5, 1e-9);
  std::filesystem::remove(folder_ / "intel-rapl:1" / "energy_uj");
  EXPECT_EQ(power.watts(2'000'000'000), std::nullopt) << "one package alone is not the machine";
}

TEST_F(Powercap, A33_the_platform_that_holds_a_package_is_not_added_to_it) {
  zone("intel-rapl:0", 1e6), zone("intel-rapl:1", 1e6, "psys");
  PackagePower power(folder_);
  power.watts(1'000'000'000);
  zone("intel-rapl:0", 16e6), zone("intel-rapl:1", 29e6, "psys");
  const auto watts = power.watts(2'000'000'000);
  ASSERT_TRUE(watts.has_value());
  EXPECT_NEAR(*watts, 15, 1e-9);
}

TEST_F(Powercap, A33_a_machine_without_counters_tells_no_power) {
  PackagePower power(folder_);
  EXPECT_EQ(power.watts(1), std::nullopt);
  EXPECT_EQ(power.watts(2), std::nullopt);
}

TEST(CoreState, A33_a_device_of_the_processor_tells_its_clock) {
  const auto device = create_device({});
  ASSERT_TRUE(device.ok()) << device.status().message();
  const StateReader read = state_reader(**device);
  double told = 0, measured = 0;
  for (int i = 0; i < 20; ++i) {
    const DeviceState state = read();
    ASSERT_TRUE(state.clock_mhz.has_value());
    told = std::max(told, *state.clock_mhz), measured = std::max(measured, core_clock_mhz());
    if (i == 0) {
      EXPECT_EQ(state.power_w, std::nullopt) << "energy since nothing";
    }
  }
  EXPECT_NEAR(told / measured, 1, 0.2);
}

}  // namespace
}  // namespace ridge
