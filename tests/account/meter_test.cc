// What the thread team's meter says of rounds whose work is known, and that it costs nothing when it is off.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "account/recorder.h"
#include "lab/statistics.h"
#include "runtime/cpu/team.h"

namespace ridge {
namespace {

void work_for(int64_t us) {
  for (const int64_t end = now_ns() + us * 1000; now_ns() < end;) {
  }
}

TEST(Ticks, have_the_length_that_two_instants_say) {
  const Instant from = Instant::now();
  work_for(2000);
  const Instant middle = Instant::now();
  work_for(2000);
  const Instant to = Instant::now();
  EXPECT_NEAR(ns_per_tick(from, middle), ns_per_tick(middle, to), 0.01 * ns_per_tick(from, to));
  EXPECT_GT(to.tick, middle.tick);
}

class Metered : public testing::Test {
 protected:
  std::unique_ptr<ThreadTeam> team_ = ThreadTeam::create(2).take();
  /// Medians over rounds: what else runs on the machine disturbs some of them.
  StreamMeter median_of(int rounds, const std::function<void()>& before, int threads,
                        const std::function<void(int)>& work) {
    std::vector<double> wait, barrier, imbalance, occupancy;
    for (int i = 0; i < rounds; ++i) {
      before();
      team_->set_metering(true);
      const int64_t begin = now_ns();
      team_->run(threads, work);
      const auto all = static_cast<double>(now_ns() - begin);
      team_->set_metering(false);
      EXPECT_EQ(team_->noted_rounds(), 1);
      const StreamMeter m = team_->meter(0, 1);
      for (const double part : {m.wait_ns, m.barrier_ns, m.imbalance_ns, m.occupancy_ns}) EXPECT_GE(part, 0);
      EXPECT_LE(m.wait_ns + m.barrier_ns + m.imbalance_ns, 1.01 * all);
      wait.push_back(m.wait_ns), barrier.push_back(m.barrier_ns), imbalance.push_back(m.imbalance_ns),
          occupancy.push_back(m.occupancy_ns);
    }
    return {1, median(wait), median(barrier), median(imbalance), median(occupancy)};
  }
};

TEST_F(Metered, a_slower_thread_is_imbalance) {
  const StreamMeter m = median_of(
      15, [] {}, 2, [](int thread) { work_for(thread == 0 ? 100 : 300); });
  EXPECT_NEAR(m.imbalance_ns, 100e3, 30e3);
  EXPECT_EQ(m.occupancy_ns, 0);
}

TEST_F(Metered, a_thread_without_work_is_occupancy) {
  const StreamMeter m = median_of(
      15, [] {}, 1, [](int) { work_for(200); });
  EXPECT_NEAR(m.occupancy_ns, 100e3, 20e3);
  EXPECT_EQ(m.imbalance_ns, 0);
}

TEST_F(Metered, a_thread_that_has_to_be_woken_is_wait_and_not_its_work) {
  const auto work = [](int) { work_for(20); };
  const StreamMeter asleep = median_of(
      15, [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }, 2, work);
  const StreamMeter awake = median_of(
      15, [] {}, 2, work);
  EXPECT_GT(asleep.wait_ns, 1e3);
  EXPECT_GT(asleep.wait_ns, awake.wait_ns);
  EXPECT_GT(asleep.wait_ns, asleep.imbalance_ns);
}

TEST_F(Metered, rounds_are_kept_apart_and_summed) {
  team_->set_metering(true);
  for (int i = 0; i < 3000; ++i) team_->run(2, [](int) {});
  team_->run(2, [](int thread) { work_for(thread == 0 ? 50 : 20050); });
  team_->set_metering(false);
  ASSERT_EQ(team_->noted_rounds(), 3001);
  EXPECT_EQ(team_->meter(0, 3001).meetings, 3001);
  EXPECT_GT(team_->meter(3000, 3001).imbalance_ns, 2e6);
  const double parts = team_->meter(0, 1500).barrier_ns + team_->meter(1500, 3001).barrier_ns;
  EXPECT_NEAR(parts, team_->meter(0, 3001).barrier_ns, 1e-6 * parts);
}

TEST_F(Metered, nothing_is_noted_when_it_is_off) {
  for (int i = 0; i < 100; ++i) team_->run(2, [](int) {});
  EXPECT_EQ(team_->noted_rounds(), 0);
  team_->set_metering(true);
  team_->run(2, [](int) {});
  team_->set_metering(false);
  for (int i = 0; i < 100; ++i) team_->run(2, [](int) {});
  EXPECT_EQ(team_->noted_rounds(), 1);
}

}  // namespace
}  // namespace ridge
