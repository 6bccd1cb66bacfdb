// The drawn roofline, read back: its grid gives the scale, and marks and roofs lie where their figures are.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>

#include "lab/example_profile.h"
#include "lab/report_parts.h"

namespace ridge {
namespace {

struct Point {
  double x = 0, y = 0;
};
struct Line {
  std::string classes;
  Point from, to;
};

/// Places along an axis by the power of ten that is written beside its grid line.
struct Axis {
  std::map<double, double> at;
  /// By the first and the last: what the axis says the place of `value` is.
  double place(double value) const {
    const auto &low = *at.begin(), &high = *at.rbegin();
    return low.second +
           (std::log10(value) - low.first) / (high.first - low.first) * (high.second - low.second);
  }
  double decade() const { return place(10) - place(1); }
};

/// "0.01", "10", "1 G": the power of ten.
double power_of(const std::string& label) {
  const std::string units = " kMGTP";
  const double unit = label.find(' ') == std::string::npos ? 0 : 3.0 * double(units.find(label.back()));
  return std::log10(std::strtod(label.c_str(), nullptr)) + unit;
}

struct Drawing {
  Axis x, y;
  std::vector<Line> lines;
  std::map<std::string, Point> marks;  // by the row's id

  explicit Drawing(const Profile& p, int width = 900, int height = 480) {
    const std::string svg = report::roofline_svg(p, report::named_rows(p), width, height, "d");
    const std::string n = "(-?[0-9.]+)";
    const std::regex line("<line class=\"([^\"]*)\" x1=\"" + n + "\" y1=\"" + n + "\" x2=\"" + n +
                          "\" y2=\"" + n + "\"/>(?:<text [^>]*>([^<]*)</text>)?");
    for (std::sregex_iterator m(svg.begin(), svg.end(), line), end; m != end; ++m) {
      const auto number = [&](size_t group) { return std::strtod((*m)[group].str().c_str(), nullptr); };
      lines.push_back({(*m)[1], {number(2), number(3)}, {number(4), number(5)}});
      const Line& l = lines.back();
      if (l.classes != "grid") continue;
      if (l.from.x == l.to.x)
        x.at[power_of((*m)[6])] = l.from.x;
      else
        y.at[power_of((*m)[6])] = l.from.y;
    }
    // A circle begins at its left end, a diamond at its top: the half of its width is in the next number.
    const std::regex mark("id=\"d-([^\"]*)\" tabindex[^>]*><path class=\"(prefill|decode)\" d=\"M" + n + " " +
                          n + "[al]" + n);
    for (std::sregex_iterator m(svg.begin(), svg.end(), mark), end; m != end; ++m) {
      const auto number = [&](size_t group) { return std::strtod((*m)[group].str().c_str(), nullptr); };
      Point at{number(3), number(4)};
      ((*m)[2] == "prefill" ? at.x : at.y) += number(5);
      marks[(*m)[1]] = at;
    }
  }
};

constexpr double kRounding = 0.35;  // coordinates have one decimal, and a mark's centre is a sum of two

TEST(Roofline, marks_lie_at_intensity_and_rate_on_the_axes_that_are_drawn) {
  const Profile p = example_profile();
  const auto rows = report::named_rows(p);
  for (const int width : {900, 420}) {
    const Drawing d(p, width);
    ASSERT_GE(d.x.at.size(), 3u);
    ASSERT_GE(d.y.at.size(), 3u);
    EXPECT_GT(d.x.decade(), 10) << "more FLOP per byte is further right";
    EXPECT_LT(d.y.decade(), -10) << "and more FLOP/s further up, where y is less";
    int computing = 0;
    for (const report::NamedRow& r : rows) {
      const auto flops = static_cast<double>(r.row->cost.total_flops());
      if (flops == 0) continue;
      ++computing;
      ASSERT_EQ(d.marks.count(r.id), 1u) << r.id;
      const Point& at = d.marks.at(r.id);
      EXPECT_NEAR(at.x, d.x.place(flops / static_cast<double>(r.row->cost.total_bytes())), kRounding) << r.id;
      EXPECT_NEAR(at.y, d.y.place(flops / r.row->time_us * 1e6), kRounding) << r.id;
    }
    EXPECT_EQ(computing, 4);
    EXPECT_EQ(d.marks.size(), 5u) << "and one that moves alone";
  }
}

TEST(Roofline, a_row_in_half_the_time_lies_the_log_of_two_higher_and_not_aside) {
  Profile p = example_profile();
  ProfilePhase& decode = p.phases[1];
  ProfileRow half = decode.rows[0];
  half.time_us /= 2, half.kernel = "twice_as_fast";
  decode.rows.insert(decode.rows.begin() + 1, half);
  std::string slow_id, fast_id;
  for (const report::NamedRow& r : report::named_rows(p)) {
    if (r.phase->phase != Phase::kDecode || r.row->op != "linear") continue;
    (r.row->kernel == "twice_as_fast" ? fast_id : slow_id) = r.id;
  }
  const Drawing d(p);
  ASSERT_TRUE(d.marks.count(slow_id) == 1 && d.marks.count(fast_id) == 1);
  const Point slow = d.marks.at(slow_id), fast = d.marks.at(fast_id);
  EXPECT_NEAR(fast.x, slow.x, kRounding);
  EXPECT_NEAR(slow.y - fast.y, -d.y.decade() * std::log10(2), 2 * kRounding);
}

TEST(Roofline, the_memory_roof_meets_the_highest_at_the_ridge_and_falls_with_the_intensity) {
  const Profile p = example_profile();
  const Drawing d(p);
  const ThreadCeilings& c = p.machine.at(p.threads);
  double peak = 0;
  for (const double f : c.flops) peak = std::max(peak, f);
  const double bandwidth = c.curve.back().read * 1e9, ridge = peak / bandwidth;
  int slopes = 0, tops = 0;
  for (const Line& l : d.lines) {
    if (l.classes != "roof") continue;
    if (l.from.y == l.to.y) {
      ++tops;
      EXPECT_NEAR(l.from.y, d.y.place(peak), kRounding);
      EXPECT_LT(l.from.x, d.x.place(ridge)) << "it spans the ridge of main memory";
      EXPECT_GT(l.to.x, d.x.place(ridge));
      continue;
    }
    ++slopes;
    EXPECT_NEAR(l.to.x, d.x.place(ridge), kRounding);
    EXPECT_NEAR(l.to.y, d.y.place(peak), kRounding);
    // Its lower end: bandwidth times the intensity there.
    const double intensity = std::pow(10, (l.from.x - d.x.place(1)) / d.x.decade());
    EXPECT_LT(intensity, ridge / 5);
    EXPECT_NEAR(l.from.y, d.y.place(bandwidth * intensity), 1.0);
  }
  EXPECT_EQ(slopes, 1);
  EXPECT_EQ(tops, 1);
}

}  // namespace
}  // namespace ridge
