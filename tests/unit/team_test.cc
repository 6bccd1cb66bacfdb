// A team runs every part once, takes the parts of threads that are not here, and waits where it is told to.

#include "runtime/cpu/team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace ridge {
namespace {

TEST(ThreadTeam, every_part_runs_once_and_ends_before_run_returns) {
  for (const int threads : {1, 2, 3, 7}) {
    const auto team = ThreadTeam::create(threads).take();
    for (int round = 0; round < 2000; ++round) {
      const int parts = 1 + round % threads;
      // Gone when this round ends: a thread that came late must not touch it.
      std::vector<int64_t> times(static_cast<size_t>(parts), 0);
      const auto work = [&](int part) { ++times[static_cast<size_t>(part)]; };
      round % 5 == 0 ? team->run_together(parts, work) : team->run(parts, work);
      ASSERT_EQ(times, std::vector<int64_t>(static_cast<size_t>(parts), 1)) << threads << " " << round;
    }
  }
}

/// On one core, so that the second thread is away while the first one works.
class OneCore : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before_)) ++cpu;
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    team_ = ThreadTeam::create(2).take();
  }
  void TearDown() override { sched_setaffinity(0, sizeof(before_), &before_); }

  /// Of 200 rounds those in which the caller ran both parts.
  int alone(bool together) {
    int rounds = 0;
    for (int i = 0; i < 200; ++i) {
      std::thread::id by[2];
      const auto work = [&](int part) { by[part] = std::this_thread::get_id(); };
      together ? team_->run_together(2, work) : team_->run(2, work);
      EXPECT_EQ(by[0], std::this_thread::get_id());
      rounds += by[1] == by[0];
    }
    return rounds;
  }
  cpu_set_t before_;
  std::unique_ptr<ThreadTeam> team_;
};

TEST_F(OneCore, the_part_of_a_thread_that_is_away_is_taken) {
  EXPECT_GT(alone(false), 0);
}

TEST_F(OneCore, threads_that_run_together_are_waited_for) {
  EXPECT_EQ(alone(true), 0);
}

}  // namespace
}  // namespace ridge
