#include "kernels/rows16/group_order.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace ridge {
namespace {

TEST(GroupOrder, every_group_comes_once_and_no_step_twice) {
  for (const int64_t count : {0, 1, 2, 3, 16, 17, 64})
    for (const int64_t first : {0, 5}) {
      std::vector<int64_t> order;
      for_groups_from_both_ends(first, first + count, [&](int64_t g) { order.push_back(g); });
      EXPECT_EQ(static_cast<int64_t>(order.size()), count);
      std::set<int64_t> seen, steps;
      for (size_t i = 0; i < order.size(); ++i) {
        EXPECT_GE(order[i], first);
        EXPECT_LT(order[i], first + count);
        EXPECT_TRUE(seen.insert(order[i]).second) << order[i];
        if (i > 0) {
          EXPECT_TRUE(steps.insert(order[i] - order[i - 1]).second) << order[i];
        }
      }
    }
}

}  // namespace
}  // namespace ridge
