// The account as text: what is in every line, however long shapes are, and what comes first in long lines.

#include <gtest/gtest.h>

#include "lab/example_profile.h"
#include "lab/report.h"
#include "lab/shown.h"

namespace ridge {
namespace {

std::vector<std::string> lines_of(const std::string& all) {
  std::vector<std::string> out;
  for (size_t at = 0, end; at < all.size(); at = end + 1) {
    end = std::min(all.find('\n', at), all.size());
    out.push_back(all.substr(at, end - at));
  }
  return out;
}
/// The first line from `from` on that begins so.
size_t line_at(const std::vector<std::string>& lines, const std::string& begin, size_t from = 0) {
  while (from < lines.size() && lines[from].rfind(begin, 0) != 0) ++from;
  return from;
}

/// 100 us of which the limit is 50; the losses are set by the caller.
ProfileRow row_of_100(std::initializer_list<std::pair<Loss, double>> losses) {
  ProfileRow r;
  r.op = "linear", r.time_us = 100, r.verdict.limit_us = 50;
  for (const auto& [loss, us] : losses) r.verdict.loss(loss) = us;
  return r;
}

TEST(ProfileText, what_is_unexplained_is_shown_beside_two_larger_losses_from_a_hundredth_on) {
  using Losses = std::vector<std::pair<Loss, double>>;
  EXPECT_EQ(shown_losses(row_of_100(
                {{Loss::kBarrier, 10}, {Loss::kConversion, 30}, {Loss::kShape, 6}, {Loss::kUnexplained, 4}})),
            (Losses{{Loss::kUnexplained, 0.04}, {Loss::kConversion, 0.3}, {Loss::kBarrier, 0.1}}));
  EXPECT_EQ(shown_losses(row_of_100({{Loss::kBarrier, 51}, {Loss::kUnexplained, -1}})),
            (Losses{{Loss::kUnexplained, -0.01}, {Loss::kBarrier, 0.51}}));
  EXPECT_EQ(shown_losses(row_of_100({{Loss::kBarrier, 49.1}, {Loss::kUnexplained, 0.9}})),
            (Losses{{Loss::kBarrier, 0.491}}));
  Profile p = example_profile();
  ProfileRow& r = p.phases[0].rows[0];
  r.verdict.loss_us = {};
  r.verdict.loss(Loss::kBarrier) = 0.3 * r.time_us, r.verdict.loss(Loss::kConversion) = 0.2 * r.time_us;
  r.verdict.loss(Loss::kUnexplained) = 0.1 * r.time_us;
  EXPECT_NE(profile_text(p, false).find("unexplained 10% barrier 30% conversion 20%\n"), std::string::npos);
  EXPECT_NE(report_html(p, nullptr).find(">unexplained 10.0\xC2\xA0%, barrier 30.0"), std::string::npos);
}

TEST(ProfileText, rows_of_one_shape_in_two_formats_are_told_apart_in_every_table) {
  Profile p = example_profile();
  std::vector<ProfileRow>& rows = p.phases[1].rows;
  rows.insert(rows.begin(), rows.front());
  rows[0].formats = "i8 q4_k", rows[1].formats = "i8 q6_k";
  const std::string all = profile_text(p, false), page = report_html(p, nullptr);
  for (const std::string name : {"linear q4_k", "linear q6_k"}) {
    size_t times = 0;
    for (const std::string& line : lines_of(all)) times += line.rfind("  " + name + " ", 0) == 0;
    EXPECT_EQ(times, 2u) << name << ": its time, and its bytes\n" << all;
    EXPECT_NE(page.find("<td class=\"l\">" + name + "</td>"), std::string::npos) << name;
  }
}

TEST(ProfileText, a_row_is_named_by_the_formats_that_it_reads_each_once) {
  const auto name = [](const char* op, const char* formats) {
    ProfileRow r;
    r.op = op, r.formats = formats;
    return row_name(r);
  };
  EXPECT_EQ(name("attention_decode", "f16 f16"), "attention_decode f16");
  EXPECT_EQ(name("attention_decode", "f16 f32"), "attention_decode f16 f32");
  EXPECT_EQ(name("attention_decode", "i8 i8"), "attention_decode i8");
  EXPECT_EQ(name("linear", "i8 q4_1"), "linear q4_1");
  EXPECT_EQ(name("sample", ""), "sample");
}

TEST(ProfileText, columns_stay_under_their_heads_beside_any_shape) {
  Profile p = example_profile();
  p.phases[1].rows[0].shape = "26 q, 9/3 x 64, window 512, 26 kv 1079 #5f0c21d8";
  p.phases[1].rows[1].formats = "f16 some_format_of_a_long_name";
  const auto lines = lines_of(profile_text(p, false));
  const size_t decode = line_at(lines, "decode:"), head = decode + 1;
  ASSERT_LT(head + 4, lines.size());
  const size_t share = lines[head].find("share") + 5;
  for (size_t i = head + 1; i <= head + 4; ++i) EXPECT_EQ(lines[i].find('%') + 1, share) << lines[i];
  const size_t bytes = line_at(lines, "  bytes of a call", decode), last = lines[bytes].find("MFLOP") + 5;
  for (size_t i = bytes + 1; i <= bytes + 3; ++i) EXPECT_EQ(lines[i].size(), last) << lines[i];
}

TEST(ProfileText, limit_and_what_is_unexplained_begin_the_step_line_and_no_such_line_is_long) {
  Profile p = example_profile();
  for (ProfileRow& r : p.phases[1].rows)
    for (double& us : r.verdict.loss_us) us += 0.001 * r.time_us;
  p.workload.sampling = "temperature 0.7, top-k 40, top-p 0.9, repetition penalty 1.1, presence penalty 0.5";
  p.machine.cpu = "A processor whose vendor gave it a name that takes most of a line of its own";
  Drift& d = p.phases[1].drift;
  d.readings = 18, d.bytes = 90'000'000, d.now = 78.1e9, d.file = 110.2e9, d.flops_now = 1e12,
  d.flops_file = 2e12, d.near_now = 1e12, d.near_file = 1e12;
  const auto lines = lines_of(profile_text(p, false));
  const size_t step = line_at(lines, "  step: ", line_at(lines, "decode:"));
  ASSERT_LT(step, lines.size());
  const double unexplained = p.phases[1].loss_us(Loss::kUnexplained) / p.phases[1].wall_us;
  char begin[128];
  std::snprintf(begin, sizeof begin, "  step: limit %.1f %%, unexplained %.1f %%; launch ",
                100 * p.phases[1].limit_us() / p.phases[1].wall_us, 100 * unexplained);
  EXPECT_EQ(lines[step].rfind(begin, 0), 0u) << lines[step];
  EXPECT_EQ(lines[step + 1].rfind("    ", 0), 0u) << lines[step + 1];
  // Tables are as wide as they are.
  for (size_t i = 0; i < lines.size(); ++i)
    if (i < line_at(lines, "prefill:") || i >= step) {
      EXPECT_LE(lines[i].size(), 112u) << lines[i];
    }
}

TEST(Wrapped, keeps_every_character_but_the_space_at_a_break) {
  const std::string word(50, 'x'), line = "a " + word + ", " + word + ", " + word + "; " + word;
  EXPECT_EQ(wrapped(line, ",;", 2), "a " + word + ", " + word + ",\n  " + word + "; " + word);
  EXPECT_EQ(wrapped(line, ";", 2), "a " + word + ", " + word + ", " + word + ";\n  " + word);
  EXPECT_EQ(wrapped("1,5; 2", ",;", 2), "1,5; 2");
  EXPECT_EQ(wrapped("", ",", 2), "");
}

}  // namespace
}  // namespace ridge
