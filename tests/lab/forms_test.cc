// One account has several forms: text, JSON and trace give the same figures, and a loss its own name in each.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "account/flat_machine.h"
#include "engine/generate.h"
#include "lab/example_profile.h"
#include "lab/trace.h"

namespace ridge {
namespace {

using Json = nlohmann::json;

/// Rows of unlike losses, the greatest and the second not the same in all.
Profile with_losses() {
  Profile p = example_profile();
  int row = 0;
  for (ProfilePhase& phase : p.phases)
    for (ProfileRow& r : phase.rows) {
      ++row;
      for (int l = 0; l < kLosses; ++l)
        r.verdict.loss_us[static_cast<size_t>(l)] = r.time_us * (1 + (l + row) % kLosses) / 100;
    }
  return p;
}

/// The words of the line that begins with an operator, formats or none, and a shape, after them.
std::vector<std::string> words_of(const std::string& text, const std::string& op, const std::string& shape) {
  size_t at = 0, end = 0, found = std::string::npos;
  const std::string begin = "\n  " + op + " ", there = " " + shape + " ";
  while (found == std::string::npos && (at = text.find(begin, at)) != std::string::npos) {
    end = text.find('\n', at + 1);
    found = text.find(there, at);
    if (found >= end) found = std::string::npos;
    ++at;
  }
  EXPECT_NE(found, std::string::npos) << op << " " << shape << " begins no line of\n" << text;
  if (found == std::string::npos) return {};
  std::istringstream line(text.substr(found + there.size(), end - found - there.size()));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

/// A printed figure is `value` to the last digit that it shows.
void expect_shown(const std::string& shown, double value, const std::string& what) {
  const size_t point = shown.find('.'), digits = shown.find_first_not_of("-0123456789.");
  const auto places = point == std::string::npos ? size_t{0} : std::min(digits, shown.size()) - point - 1;
  EXPECT_NEAR(std::strtod(shown.c_str(), nullptr), value, 0.5001 * std::pow(10, -double(places))) << what;
}

double bytes_of(const Json& row) {
  double sum = 0;
  for (const auto& [name, moved] : row.at("bytes").items())
    sum += moved.at("read").get<double>() + moved.at("written").get<double>();
  return sum;
}

/// The text from a phase's heading to the next.
std::string section(const std::string& all, const std::string& phase) {
  const size_t at = all.find("\n" + phase + ": ");
  EXPECT_NE(at, std::string::npos) << phase;
  return at == std::string::npos ? "" : all.substr(at, all.find("\n\n", at + 1) - at);
}

TEST(Forms, every_column_of_the_text_is_the_number_that_the_json_has) {
  const Profile p = with_losses();
  const std::string whole = profile_text(p, false, true);
  int rows = 0;
  const Json json = Json::parse(profile_json(p));
  for (const Json& phase : json.at("phases")) {
    const std::string text = section(whole, phase.at("name"));
    for (const Json& r : phase.at("operators")) {
      const std::string op = r.at("name"), shape = r.at("shape");
      SCOPED_TRACE(op + " " + shape);
      const std::vector<std::string> words = words_of(text, op, shape);
      ASSERT_GE(words.size(), 9u);
      const double calls = r.at("calls"), flops = r.at("flops"), bytes = bytes_of(r);
      expect_shown(words[0], calls, "calls");
      expect_shown(words[1], r.at("time_us").get<double>() / calls, "us/call");
      expect_shown(words[2], 100 * r.at("time_us").get<double>() / phase.at("wall_us").get<double>(),
                   "share");
      expect_shown(words[3], flops / calls / 1e6, "MFLOP");
      expect_shown(words[4], bytes / calls / 1e3, "KB");
      expect_shown(words[5], bytes > 0 ? flops / bytes : 0, "FLOP/B");
      expect_shown(words[5], r.at("intensity"), "FLOP/B");
      expect_shown(words[6], r.at("limit_us").get<double>() / calls, "limit us");
      EXPECT_EQ(words[7], r.at("bound"));
      expect_shown(words[8], 100 * r.at("attainment").get<double>(), "att.");
      ++rows;
    }
  }
  EXPECT_EQ(rows, 7);
}

TEST(Forms, bytes_by_class_and_executed_flops_of_the_text_are_those_of_the_json) {
  Profile p = example_profile();
  p.phases[0].rows[1].cost.square_flops = 800'000'000;
  const std::string whole = profile_text(p, false, true);
  int rows = 0, cells = 0;
  const Json json = Json::parse(profile_json(p));
  for (const Json& phase : json.at("phases")) {
    const std::string text = section(whole, phase.at("name"));
    const std::string table = text.substr(text.find("\n  bytes of a call"));
    std::istringstream heading(table.substr(1, table.find('\n', 1)));
    std::vector<std::string> classes;
    for (std::string word; heading >> word;) classes.push_back(word);
    for (const Json& r : phase.at("operators")) {
      if (r.at("name") == "host") continue;
      SCOPED_TRACE(r.at("name").get<std::string>());
      const std::vector<std::string> words = words_of(table, r.at("name"), r.at("shape"));
      ASSERT_EQ(words.size(), r.at("bytes").size() + 1 + r.count("square_flops"));
      const double calls = r.at("calls");
      size_t at = 0;
      // Cells come in the order of the heading; empty ones leave no word.
      for (const std::string& name : classes) {
        if (!r.at("bytes").contains(name)) continue;
        const std::string& cell = words.at(at++);
        const Json& moved = r.at("bytes").at(name);
        expect_shown(cell, moved.at("read").get<double>() / calls / 1e3, name + " read");
        expect_shown(cell.substr(cell.find('/') + 1), moved.at("written").get<double>() / calls / 1e3,
                     name + " written");
        ++cells;
      }
      expect_shown(words.at(at++), r.at("executed_flops").get<double>() / calls / 1e6, "executed MFLOP");
      if (r.contains("square_flops"))
        expect_shown(words.at(at), r.at("square_flops").get<double>() / calls / 1e6, "full square MFLOP");
      ++rows;
    }
  }
  EXPECT_EQ(rows, 5);
  EXPECT_EQ(cells, 3 + 2 + 3 + 2 + 1);
}

TEST(Forms, A25_each_loss_has_its_own_name_in_text_and_json) {
  const std::vector<std::pair<Loss, std::string>> names = {{Loss::kLaunch, "launch"},
                                                           {Loss::kShape, "shape"},
                                                           {Loss::kOccupancy, "occupancy"},
                                                           {Loss::kTail, "tail"},
                                                           {Loss::kWait, "wait"},
                                                           {Loss::kImbalance, "imbalance"},
                                                           {Loss::kBarrier, "barrier"},
                                                           {Loss::kHostGap, "host_gap"},
                                                           {Loss::kConversion, "conversion"},
                                                           {Loss::kUnexplained, "unexplained"}};
  ASSERT_EQ(names.size(), size_t{kLosses});
  for (size_t i = 0; i < names.size(); ++i) {
    Profile p = example_profile();
    ProfilePhase& phase = p.phases[0];
    for (ProfileRow& r : phase.rows) r.verdict.loss_us.fill(0);
    ProfileRow& r = phase.rows[0];
    const auto& [first, first_name] = names[i];
    const auto& [second, second_name] = names[(i + 1) % names.size()];
    r.verdict.loss(first) = 0.3 * r.time_us, r.verdict.loss(second) = 0.2 * r.time_us;
    const Json json = Json::parse(profile_json(p)).at("phases").at(0);
    const Json row = json.at("operators").at(0);
    for (const Json& of : {json, row}) {
      ASSERT_EQ(of.at("loss_us").size(), size_t{kLosses});
      for (const auto& [name, us] : of.at("loss_us").items())
        EXPECT_DOUBLE_EQ(us, name == first_name    ? 0.3 * r.time_us
                             : name == second_name ? 0.2 * r.time_us
                                                   : 0)
            << name;
    }
    const std::string text = section(profile_text(p, false, true), "prefill");
    // What is unexplained comes first, however much it is.
    const bool turned = second == Loss::kUnexplained;
    const std::string shown = turned ? second_name + " 20% " + first_name + " 30%\n"
                                     : first_name + " 30% " + second_name + " 20%\n";
    EXPECT_NE(text.find(" " + shown), std::string::npos) << text;
    const std::string step = text.substr(text.find("\n  step: limit"));
    for (const auto& [name, share] : {std::pair(first_name, 0.3), std::pair(second_name, 0.2)}) {
      const size_t at = step.find(" " + name + " ");
      ASSERT_NE(at, std::string::npos) << name << " is not in " << step;
      expect_shown(step.substr(at + 2 + name.size()), 100 * share * r.time_us / phase.wall_us, name);
    }
  }
}

TEST(Forms, A25_what_the_device_metered_is_charged_to_the_loss_of_that_name) {
  Cost c;
  c.flops[0] = 1'000'000;
  Occasion o;
  o.measured_us = 1000;
  o.wait_us = 11, o.barrier_us = 13, o.imbalance_us = 17, o.occupancy_us = 19, o.launch_us = 23;
  const Verdict v = judge(c, flat_machine(1e10, 1e11).at(1), o);
  const std::map<std::string, double> metered = {
      {"wait", 11}, {"barrier", 13}, {"imbalance", 17}, {"occupancy", 19}, {"launch", 23}};
  for (int l = 0; l < kLosses; ++l) {
    const auto of = metered.find(loss_name(static_cast<Loss>(l)));
    if (of != metered.end()) {
      EXPECT_DOUBLE_EQ(v.loss(static_cast<Loss>(l)), of->second) << of->first;
    }
  }
}

TEST(Forms, A29_the_mean_of_many_answers_is_not_printed_without_the_tail_or_why_there_is_none) {
  Profile p = example_profile();
  p.tpot.us.assign(980, 50e3);
  p.tpot.us.insert(p.tpot.us.end(), 20, 2050e3);
  p.tpot.requests = 1000;
  const auto last_line = [&] {
    const std::string text = profile_text(p, false);
    return text.substr(text.rfind('\n', text.size() - 2));
  };
  EXPECT_NE(last_line().find("TPOT 90.000 ms (n=1000 of 1000), P99 2050.00 ms"), std::string::npos)
      << last_line();
  EXPECT_DOUBLE_EQ(Json::parse(profile_json(p)).at("tpot").at("p99_us"), 2050e3);
  p.tpot.us.resize(298), p.tpot.requests = 300;
  EXPECT_NE(last_line().find("TPOT 50.000 ms (n=298 of 300), P99 not estimable (n=298, needs 299)"),
            std::string::npos)
      << last_line();
  const Json tpot = Json::parse(profile_json(p)).at("tpot");
  EXPECT_EQ(tpot.at("n"), 298);
  EXPECT_EQ(tpot.at("requests"), 300);
  EXPECT_DOUBLE_EQ(tpot.at("mean_us"), 50e3);
  EXPECT_DOUBLE_EQ(tpot.at("p50_us"), 50e3);
  EXPECT_TRUE(tpot.at("p99_us").is_null());
}

/// Hands steps on with the meter of each call set: so many nanoseconds of each kind.
struct Metered : StepObserver {
  Profiler* profiler = nullptr;
  void on_step(const StepFacts& facts, const StepPlan& plan) override {
    StepFacts changed = facts;
    for (CallTime& c : changed.calls)
      c.meter.wait_ns = 1000, c.meter.barrier_ns = 2000, c.meter.imbalance_ns = 3000,
      c.meter.occupancy_ns = 4000;
    profiler->on_step(changed, plan);
  }
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
};

TEST(Forms, A25_the_meter_of_each_call_is_summed_into_the_row_under_its_name) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 64, o.max_sequences = 1, o.prefill_tokens = 8;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  Metered metered;
  metered.profiler = &profiler;
  engine->set_observer(&metered);
  generate(*engine, {request(random_prompt(5, 1), 3)});
  int rows = 0;
  const Profile p = profiler.finish(flat_machine(1e10, 1e11), 1);
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (r.op == "host") continue;
      const auto calls = static_cast<double>(r.calls);
      EXPECT_DOUBLE_EQ(r.occasion.wait_us, 1 * calls) << r.op;
      EXPECT_DOUBLE_EQ(r.occasion.barrier_us, 2 * calls) << r.op;
      EXPECT_DOUBLE_EQ(r.occasion.imbalance_us, 3 * calls) << r.op;
      EXPECT_DOUBLE_EQ(r.occasion.occupancy_us, 4 * calls) << r.op;
      ++rows;
    }
  EXPECT_GT(rows, 10);
}

/// What slices, or rows, of one operator, shape and kernel in one phase come to.
struct Moved {
  int64_t calls = 0, flops = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> bytes;  // by class, read and written
  bool operator==(const Moved&) const = default;
  void add(const Json& of, int64_t of_calls) {
    calls += of_calls, flops += of.at("flops").get<int64_t>();
    for (const auto& [name, moved] : of.at("bytes").items()) {
      bytes[name].first += moved.at("read").get<int64_t>();
      bytes[name].second += moved.at("written").get<int64_t>();
    }
  }
};
void PrintTo(const Moved& m, std::ostream* out) {
  *out << m.calls << " calls, " << m.flops << " FLOP";
  for (const auto& [name, moved] : m.bytes) *out << ", " << name << " " << moved.first << "/" << moved.second;
}

TEST(Forms, the_slices_of_a_trace_compute_and_move_what_the_rows_of_the_profile_do) {
  TinySpec spec;
  spec.layers = 1;
  TinyModel tiny(spec);
  EngineOptions o;
  o.kv.context = 256, o.max_sequences = 2, o.prefill_tokens = 32;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  engine->set_observer(&profiler);
  generate(*engine, {request(random_prompt(40, 1), 4), request(random_prompt(9, 2), 3)}, 2);
  const Profile p = profiler.finish(flat_machine(1e10, 1e11), 1);
  std::map<std::string, Moved> rows, slices;
  const auto key = [](const std::string& phase, const Json& op, const Json& shape, const Json& kernel) {
    return text(phase, ": ", op.get<std::string>(), ", ", shape.get<std::string>(), ", ",
                kernel.get<std::string>());
  };
  const Json json = Json::parse(profile_json(p));
  for (const Json& phase : json.at("phases"))
    for (const Json& r : phase.at("operators"))
      if (r.at("name") != "host")
        rows[key(phase.at("name"), r.at("name"), r.at("shape"), r.at("kernel"))].add(r, r.at("calls"));
  std::string phase;  // of the step that the slice is in
  const Json trace = Json::parse(trace_json(p));
  for (const Json& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    if (e.at("cat") == "step") phase = e.at("name");
    if (e.at("cat") != "operator") continue;
    const Json& a = e.at("args");
    slices[key(phase, e.at("name"), a.at("shape"), a.at("kernel"))].add(a, 1);
  }
  EXPECT_GT(rows.size(), 20u);
  EXPECT_EQ(slices, rows);
}

}  // namespace
}  // namespace ridge
