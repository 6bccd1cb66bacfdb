#include "lab/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/request_times.h"

namespace ridge {
namespace {

TEST(Statistics, median_of_odd_even_and_no_values) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(Statistics, A28_the_first_run_is_shown_apart_and_in_no_other_figure) {
  const Runs r = runs_of({582, 202, 196});
  EXPECT_EQ(r.first, 582);
  EXPECT_EQ(r.value, 199);
  EXPECT_EQ(r.least, 196);
  EXPECT_EQ(r.most, 202);
  EXPECT_EQ(r.n, 2);
  EXPECT_EQ(runs_of({582}).n, 0) << "a first run alone says nothing";
  EXPECT_EQ(runs_of({}).first, 0);
}

TEST(Statistics, A29_p99_is_the_990th_of_a_thousand_and_stands_beside_the_mean) {
  std::vector<double> v(980, 50.0);
  v.insert(v.end(), 20, 2050.0);
  EXPECT_EQ(percentile(v, 0.5), 50);
  EXPECT_EQ(percentile(v, 0.99), 2050);
  TokenTimes times;
  for (const double ms : v) times.us.push_back(ms * 1e3);
  EXPECT_DOUBLE_EQ(times.mean_us(), 90e3);
  EXPECT_EQ(times.p99_text(), "P99 2050.00 ms");
  std::vector<double> ranks(1000);
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<double>(i + 1);
  EXPECT_EQ(percentile(ranks, 0.99), 990);
}

TEST(Statistics, p99_needs_299_values_and_p999_needs_2995) {
  EXPECT_EQ(samples_for_percentile(0.99), 299);
  EXPECT_EQ(samples_for_percentile(0.999), 2995);
}

TEST(Statistics, A30_a_p99_of_fewer_than_299_values_is_not_estimable) {
  TokenTimes times;
  EXPECT_EQ(times.p99_text(), "P99 not estimable (n=0, needs 299)");
  times.us.assign(298, 50e3);
  EXPECT_EQ(times.p99_text(), "P99 not estimable (n=298, needs 299)");
  times.us.push_back(2050e3);
  EXPECT_EQ(times.p99_text(), "P99 50.00 ms") << "rank 297 of 299";
  times.us.assign(296, 50e3), times.us.insert(times.us.end(), 3, 2050e3);
  EXPECT_EQ(times.p99_text(), "P99 2050.00 ms");
}

TEST(Statistics, A32_one_slow_call_leaves_the_median_where_it_was_and_its_time_is_shown) {
  std::vector<double> v(49, 0.7);
  v.push_back(4145.7);
  EXPECT_EQ(median(v), 0.7);
  EXPECT_EQ(percentile(v, 0.5), 0.7);
  EXPECT_EQ(percentile(v, 0.98), 0.7) << "the 49th of 50";
  EXPECT_EQ(percentile(v, 0.99), 4145.7) << "the 50th";
  TokenTimes times;
  times.us = v;
  EXPECT_NEAR(times.mean_us(), 83.6, 0.01) << "a rate of this would be 120 times too low";
  // Wherever it comes, but for the first run, which is apart.
  for (size_t rank = 0; rank < v.size(); ++rank) {
    std::vector<double> runs(50, 0.7);
    runs[rank] = 4145.7;
    runs.insert(runs.begin(), 9.0);
    const Runs r = runs_of(runs);
    ASSERT_EQ(r.value, 0.7) << rank;
    ASSERT_EQ(r.most, 4145.7) << rank;
    ASSERT_EQ(r.least, 0.7) << rank;
    ASSERT_EQ(r.n, 50) << rank;
    ASSERT_EQ(r.first, 9.0) << rank;
  }
}

TEST(Statistics, binomial_tails_by_hand) {
  EXPECT_NEAR(binomial_half_below(6, 1), 1.0 / 64, 1e-12);
  EXPECT_NEAR(binomial_half_below(10, 2), 11.0 / 1024, 1e-12);
  EXPECT_NEAR(binomial_half_below(3, 9), 1, 1e-12);
  EXPECT_EQ(binomial_half_below(5, 0), 0);
}

TEST(Statistics, five_values_carry_no_95_percent_interval_and_six_do) {
  Interval i;
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}, 0.95, &i));
  double coverage = 0;
  ASSERT_TRUE(median_interval({6, 1, 5, 2, 4, 3}, 0.95, &i, &coverage));
  EXPECT_EQ(i.low, 1);
  EXPECT_EQ(i.high, 6);
  EXPECT_EQ(i.value, 3.5);
  EXPECT_NEAR(coverage, 1 - 2.0 / 64, 1e-12);
}

TEST(Statistics, ten_values_drop_one_at_each_end) {
  // 1 - 2 * 11 / 1024 = 0.9785; with k = 3 it would be 1 - 2 * 56 / 1024 = 0.89.
  Interval i;
  ASSERT_TRUE(median_interval({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.95, &i));
  EXPECT_EQ(i.low, 2);
  EXPECT_EQ(i.high, 9);
}

TEST(Statistics, A47_the_error_is_divided_by_the_levers_tried) {
  EXPECT_NEAR(divided_confidence(0.95, 5), 0.99, 1e-12);
  EXPECT_EQ(divided_confidence(0.95, 1), 0.95);
  Interval i;
  // 99 % needs 8 values: 1 - 2 / 2^7 = 0.984, 1 - 2 / 2^8 = 0.992.
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 5, 6, 7}, divided_confidence(0.95, 5), &i));
  EXPECT_TRUE(median_interval({1, 2, 3, 4, 5, 6, 7, 8}, divided_confidence(0.95, 5), &i));
}

}  // namespace
}  // namespace ridge
