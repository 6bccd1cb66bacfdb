#include "lab/report.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "lab/example_advice.h"
#include "lab/example_profile.h"
#include "lab/report_parts.h"

namespace ridge {
namespace {

size_t count(const std::string& in, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = in.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}
std::string fixed2(double v) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f", v);
  return buffer;
}

std::string example_page() {
  const Profile p = example_profile();
  const AdviceRecord a = example_advice(p);
  return report_html(p, &a);
}

TEST(Report, holds_the_figures_of_every_row) {
  const Profile p = example_profile();
  const std::string page = report_html(p, nullptr);
  int rows = 0;
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      ++rows;
      const auto calls = static_cast<double>(r.calls);
      for (const std::string& figure :
           {r.op, r.shape, r.kernel, fixed2(r.time_us / calls), fixed2(r.time_us),
            fixed2(r.verdict.limit_us / calls), report::percent(r.time_us / phase.wall_us)})
        EXPECT_NE(page.find(">" + figure), std::string::npos) << r.op << " " << r.shape << ": " << figure;
      for (int l = 0; l < kLosses; ++l)
        EXPECT_NE(page.find("<td>" + fixed2(r.verdict.loss(static_cast<Loss>(l)))), std::string::npos)
            << r.op;
    }
  EXPECT_EQ(rows, 7);
}

TEST(Report, every_operator_row_is_on_the_roofline_and_can_be_reached_by_keyboard) {
  const std::string page = example_page();
  // Five rows but for the host's two, in a wide and a narrow drawing.
  EXPECT_EQ(count(page, "<g class=\"mark\""), 10u);
  EXPECT_EQ(count(page, "role=\"img\" aria-label=\"P1 linear q4_1 128x4096x4096;"), 2u);
  for (const std::string id : {"w-P1", "w-P2", "w-D1", "w-D2", "w-D3", "n-D3"}) {
    EXPECT_EQ(count(page, "id=\"" + id + "\" tabindex=\"0\""), 1u) << id;
    EXPECT_EQ(count(page, "id=\"" + id + "-tip\""), 1u) << id;
  }
}

TEST(Report, launches_are_shown_where_the_device_tells_them_in_every_form) {
  Profile p = example_profile();
  EXPECT_EQ(count(report_html(p, nullptr), "Launches of"), 0u);
  EXPECT_EQ(count(profile_text(p, false), "launches of"), 0u);
  EXPECT_EQ(count(profile_json(p), "\"launches\""), 0u);
  p.phases[1].rows[0].launches = {{.kernel = "rows_kernel",
                                   .blocks = 264,
                                   .threads = 128,
                                   .registers = 168,
                                   .static_shared_bytes = 1040,
                                   .dynamic_shared_bytes = 103424,
                                   .local_bytes = 24,
                                   .blocks_fitting = 2,
                                   .occupancy = 0.125},
                                  {.kernel = "join_kernel", .registers = 31}};
  const std::string page = report_html(p, nullptr), json = profile_json(p), lines = profile_text(p, false);
  for (const char* part :
       {">rows_kernel<", ">264 × 128<", ">168<", ">1040 + 103424<", ">24<", ">12.5\xC2\xA0%<"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  for (const char* part : {"\"registers\": 168", "\"static_shared_bytes\": 1040", "\"blocks_fitting\": 2",
                           "\"dynamic_shared_bytes\": 103424", "\"local_bytes\": 24", "\"occupancy\": 0.125",
                           "\"kernel\": \"join_kernel\""})
    EXPECT_NE(json.find(part), std::string::npos) << part;
  for (const char* part : {"rows_kernel", " 168 ", " 103424 ", " 12.5%", "join_kernel"})
    EXPECT_NE(lines.find(part), std::string::npos) << part << " is not in\n" << lines;
}

TEST(Report, asks_for_nothing_from_outside) {
  const std::string page = example_page();
  for (const char* reference :
       {"http:", "https:", "//cdn", "src=", "@import", "url(", "<link", "<script", "<iframe"})
    EXPECT_EQ(count(page, reference), 0u) << reference;
  EXPECT_EQ(count(page, "default-src 'none'"), 1u);
}

TEST(Report, names_from_a_file_stay_text) {
  Profile p = example_profile();
  p.workload.model = "\"><img src=x onerror=alert(1)>\x01\xff</title>";
  p.phases[0].rows[0].shape = "<s>1</s>", p.phases[0].rows[0].kernel = "'\"&";
  p.machine.cpu = "<script>", p.command = "</section>";
  AdviceRecord a = example_advice(p);
  a.considered[0].lever.to = "<i>", a.considered[0].reason = "<u>why</u>";
  const std::string page = report_html(p, &a);
  for (const char* raw : {"<img", "<script>", "<s>", "<i>", "<u>why", "</section></dd>", "\x01", "\xff"})
    EXPECT_EQ(count(page, raw), 0u) << raw;
  EXPECT_GE(count(page, "&lt;img src=x onerror=alert(1)&gt;\xEF\xBF\xBD\xEF\xBF\xBD"), 2u);
}

TEST(Report, tags_close) {
  const std::string page = example_page();
  for (const char* tag :
       {"section", "div", "table", "tr", "td", "span", "svg", "g", "text", "dl", "ul", "li", "details"})
    EXPECT_EQ(count(page, std::string("<") + tag + ">") + count(page, std::string("<") + tag + " "),
              count(page, std::string("</") + tag + ">"))
        << tag;
}

TEST(Report, shows_advice_with_interval_verdict_and_quality) {
  const std::string page = example_page();
  for (const char* part : {"+63.8 % [+55.1 %, +72.5 %]", "+62.0 % [+60.0 %, +66.0 %]", ">held<",
                           "1.20e-03 nats", "8 blocks", ">declined<", "kv: f16 → q8"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Report, A25_a_phase_above_its_limit_is_called_impossible) {
  Profile p = example_profile();
  EXPECT_EQ(count(report_html(p, nullptr), "which cannot be"), 0u);
  p.phases[0].wall_us = p.phases[0].limit_us() / 1.2;
  EXPECT_EQ(count(report_html(p, nullptr), "which cannot be"), 1u);
}

TEST(Report, says_at_its_head_and_with_the_machine_that_the_machine_was_not_idle) {
  Profile p = example_profile();
  EXPECT_EQ(count(report_html(p, nullptr), "not idle"), 0u);
  p.machine.pressure = 0.43;
  const std::string page = report_html(p, nullptr), why = "a thread waited for a core in 43 % of the probe";
  const std::string head = page.substr(0, page.find("</header>")),
                    machine = page.substr(page.find("<h3>Machine"));
  EXPECT_EQ(count(head, why), 1u);
  EXPECT_EQ(count(machine, why), 1u);
}

TEST(Report, says_of_how_many_runs_it_is_the_shortest) {
  Profile p = example_profile();
  p.runs = 4;
  EXPECT_EQ(count(report_html(p, nullptr), "<dd>the shortest of 4</dd>"), 1u);
  EXPECT_EQ(count(profile_text(p, false), "shortest of 4 runs"), 1u);
  p.runs = 1;
  EXPECT_EQ(count(report_html(p, nullptr) + profile_text(p, false), "shortest of"), 0u);
}

TEST(Report, a_row_below_a_thousandth_of_its_limit_is_not_said_to_be_above_it) {
  Profile p = example_profile();
  Verdict& v = p.phases[0].rows[0].verdict;
  v.attainment = 1e-4, v.defect = true;
  const std::string page = report_html(p, nullptr);
  EXPECT_NE(page.find("below a thousandth of its limit"), std::string::npos);
  EXPECT_EQ(count(page, "above its limit"),
            count(report_html(example_profile(), nullptr), "above its limit"));
}

TEST(Report, an_empty_profile_and_no_choice_make_a_page) {
  Profile p;
  p.machine = example_machine();
  AdviceRecord a;
  const std::string page = report_html(p, &a);
  EXPECT_NE(page.find("can price no lever"), std::string::npos);
  for (const char* broken : {"nan<", "inf<", "nan%", "\"nan", ">-<"})
    EXPECT_EQ(count(page, broken), 0u) << broken;
}

// For tests/lab/report_screenshot.sh.
TEST(Report, is_written_where_asked) {
  const char* path = std::getenv("RIDGE_REPORT_EXAMPLE");
  if (path == nullptr) GTEST_SKIP() << "RIDGE_REPORT_EXAMPLE names no file";
  ASSERT_TRUE(write_file_atomically(path, example_page()).ok());
}

}  // namespace
}  // namespace ridge
