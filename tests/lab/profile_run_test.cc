#include "lab/profile_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace ridge {
namespace {

/// Hands out profiles of two phases that take so long together, one after the other.
struct Observed {
  std::vector<double> wall_us;
  size_t taken = 0;
  Result<Profile> operator()() {
    if (taken >= wall_us.size()) return internal_error("no run is left");
    Profile p;
    p.phases.resize(2);
    // What the first phase took alone would order them the other way round.
    p.phases[0].wall_us = 1000 - 2 * wall_us[taken], p.phases[1].wall_us = 3 * wall_us[taken] - 1000;
    p.tpot_us = wall_us[taken++];
    return p;
  }
};

TEST(ProfileRun, the_shortest_of_five_is_kept_wherever_it_comes) {
  std::vector<double> us = {410, 420, 430, 440, 450};
  for (size_t shift = 0; shift < us.size(); ++shift) {
    Observed five{us};
    const auto kept = shortest_profile(std::ref(five));
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    EXPECT_EQ(kept->tpot_us, 410) << "the " << shift << "th order";
    EXPECT_DOUBLE_EQ(kept->wall_us(), 410);
    EXPECT_EQ(kept->runs, 5);
    EXPECT_EQ(five.taken, 5u);
    std::rotate(us.begin(), us.begin() + 1, us.end());
  }
}

TEST(ProfileRun, a_run_that_fails_ends_them) {
  Observed two{{410, 420}};
  const auto kept = shortest_profile(std::ref(two));
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.status().message(), "no run is left");
}

}  // namespace
}  // namespace ridge
