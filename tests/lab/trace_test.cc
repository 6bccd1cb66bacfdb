#include "lab/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "account/flat_machine.h"
#include "engine/generate.h"
#include "lab/example_profile.h"

namespace ridge {
namespace {

using Json = nlohmann::json;

int64_t ns(const Json& us) {
  return std::llround(us.get<double>() * 1e3);
}

struct Parsed {
  std::vector<Json> slices, metadata;
};
Parsed parse(const Profile& p) {
  Parsed out;
  const Json all = Json::parse(trace_json(p));
  for (const Json& e : all.at("traceEvents")) (e.at("ph") == "X" ? out.slices : out.metadata).push_back(e);
  return out;
}

TEST(Trace, A19_stages_of_a_request_sum_to_its_end_to_end_time) {
  const Profile p = example_profile();
  int64_t whole = 0, stages = 0;
  for (const Json& e : parse(p).slices) {
    if (e.at("cat") == "request") whole += ns(e.at("dur"));
    if (e.at("cat") == "stage") stages += ns(e.at("dur"));
  }
  EXPECT_EQ(whole, 12'100'777 - 1'000'000);
  EXPECT_EQ(stages, whole);
}

TEST(Trace, slices_of_a_step_fill_it_and_lie_inside_it) {
  const Parsed t = parse(example_profile());
  int steps = 0;
  for (const Json& step : t.slices) {
    if (step.at("cat") != "step") continue;
    ++steps;
    const int64_t begin = ns(step.at("ts")), end = begin + ns(step.at("dur"));
    int64_t at = begin, inside = 0;
    for (const Json& e : t.slices) {
      if (e.at("cat") != "operator" && e.at("cat") != "host") continue;
      if (ns(e.at("ts")) < begin || ns(e.at("ts")) >= end) continue;
      EXPECT_EQ(ns(e.at("ts")), at) << "no gap and no overlap";
      at += ns(e.at("dur")), inside += ns(e.at("dur"));
    }
    EXPECT_EQ(at, end);
    EXPECT_EQ(inside, end - begin);
  }
  EXPECT_EQ(steps, 2);
}

TEST(Trace, calls_carry_their_account) {
  const Profile p = example_profile();
  int calls = 0;
  for (const Json& e : parse(p).slices) {
    if (e.at("cat") != "operator") continue;
    ++calls;
    const Json& a = e.at("args");
    for (const char* key : {"shape", "kernel", "flops", "bytes", "limit_us", "bound", "attainment"})
      EXPECT_TRUE(a.contains(key)) << key;
    EXPECT_NEAR(a.at("attainment").get<double>(), a.at("limit_us").get<double>() / e.at("dur").get<double>(),
                1e-9);
  }
  EXPECT_EQ(calls, 3);
}

/// A prefill and nine decode steps on a machine that gives `read` of the bytes and half of the operations a
/// second that its file says.
Profile drifted_profile(const Machine& machine, double read) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 128;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  profiler.read_far([&](const StepPlan& plan) {
    FarReading r;
    for (size_t c = 0; c < plan.calls().size(); ++c) {
      const Cost cost = plan.cost(c);
      const int64_t bytes =
          cost.read_bytes[at(DataClass::kWeights)] + cost.read_bytes[at(DataClass::kScales)];
      r.bytes += bytes;
      r.stream_us.push_back(static_cast<double>(bytes) / (machine.at(1).curve.back().read * read * 1e3));
      r.piece_us.push_back(r.stream_us.back());
    }
    r.flops = machine.at(1).flops[static_cast<size_t>(Engine::kF32)] / 2;
    return r;
  });
  engine->set_observer(&profiler);
  generate(*engine, {request(random_prompt(40, 1), 10)});
  return profiler.finish(machine, 1);
}

/// Of every row its calls' limits and times sum to its own.
void expect_rows_of_calls(const Profile& p) {
  using Row = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  struct Sum {
    double limit_us = 0, time_us = 0;
  };
  std::map<Row, Sum> sums;
  std::string phase;
  for (const Json& e : parse(p).slices) {
    if (e.at("cat") == "step") phase = e.at("name");
    if (e.at("cat") != "operator") continue;
    const Json& a = e.at("args");
    Sum& s = sums[{phase, e.at("name"), a.at("kernel"), a.at("shape"), a.at("formats")}];
    s.limit_us += a.at("limit_us").get<double>(), s.time_us += e.at("dur").get<double>();
  }
  size_t rows = 0;
  for (const ProfilePhase& f : p.phases) {
    for (const ProfileRow& r : f.rows) {
      if (r.op == "host") continue;
      ++rows;
      const Sum& s = sums[{phase_name(f.phase), r.op, r.kernel, r.shape, r.formats}];
      EXPECT_NEAR(s.time_us, r.time_us, 1e-6 * r.time_us) << r.op << " " << r.shape;
      EXPECT_NEAR(s.limit_us, r.verdict.limit_us, 1e-6 * r.verdict.limit_us) << r.op << " " << r.shape;
    }
  }
  EXPECT_EQ(sums.size(), rows);
}

TEST(Trace, calls_are_judged_by_the_ceilings_of_the_run_as_the_profiles_rows_are) {
  const Profile p = drifted_profile(flat_machine(1e10, 1e11), 0.5);
  bool memory = false, compute = false;
  for (const ProfilePhase& f : p.phases) {
    EXPECT_NEAR(f.drift.now, 5e9, 1);
    EXPECT_DOUBLE_EQ(f.drift.arithmetic(), 0.5);
    for (const ProfileRow& r : f.rows)
      memory |= r.verdict.bound == Bound::kFarMemory, compute |= r.verdict.bound == Bound::kCompute;
  }
  EXPECT_TRUE(memory && compute) << "both of what has drifted bind some row";
  expect_rows_of_calls(p);
}

TEST(Trace, calls_of_a_row_that_beat_a_low_reading_are_judged_by_what_the_row_got) {
  const Profile p = drifted_profile(flat_machine(1e12, 1e13), 1e-6);
  bool beaten = false;
  for (const ProfilePhase& f : p.phases)
    for (const ProfileRow& r : f.rows) beaten |= r.occasion.far_read_rate > 1.1 * f.drift.now;
  EXPECT_TRUE(beaten);
  expect_rows_of_calls(p);
}

TEST(Trace, says_when_the_machine_was_not_idle_as_it_was_probed) {
  Profile p = example_profile();
  EXPECT_FALSE(Json::parse(trace_json(p)).at("otherData").at("machine").contains("disturbed"));
  p.machine.pressure = 0.43;
  EXPECT_EQ(Json::parse(trace_json(p)).at("otherData").at("machine").at("disturbed"),
            "a thread waited for a core in 43 % of the probe's time");
}

TEST(Trace, times_start_at_the_first_instant_and_tracks_have_names) {
  const Parsed t = parse(example_profile());
  double first = 1e18;
  std::map<std::pair<int, int64_t>, bool> used, named;
  for (const Json& e : t.slices)
    first = std::min(first, e.at("ts").get<double>()), used[{e.at("pid"), e.at("tid")}] = true;
  for (const Json& e : t.metadata)
    if (e.at("name") == "thread_name") named[{e.at("pid"), e.at("tid")}] = true;
  EXPECT_EQ(first, 0);
  EXPECT_EQ(used, named);
}

TEST(Trace, an_empty_profile_is_a_valid_trace) {
  Profile p;
  p.machine = example_machine();
  EXPECT_TRUE(parse(p).slices.empty());
}

TEST(Trace, A23_overlapping_requests_keep_their_own_durations) {
  Profile p;
  p.machine = example_machine();
  p.stages = {{1, Stage::kPrefill, 0, 10'300'000}, {2, Stage::kPrefill, 5'000'000, 2'990'000'000}};
  std::map<int64_t, int64_t> whole;
  int64_t first = INT64_MAX, last = 0;
  for (const Json& e : parse(p).slices) {
    if (e.at("cat") != "request") continue;
    whole[e.at("tid")] = ns(e.at("dur"));
    first = std::min(first, ns(e.at("ts"))), last = std::max(last, ns(e.at("ts")) + ns(e.at("dur")));
  }
  EXPECT_EQ(whole[1], 10'300'000);
  EXPECT_EQ(whole[2], 2'985'000'000);
  EXPECT_EQ(last - first, 2'990'000'000) << "together: not 2995.3 ms";
}

TEST(Trace, A23_a_span_whose_begin_was_lost_is_counted_and_no_slice_is_negative) {
  Profile p;
  p.machine = example_machine();
  p.stages = {{1, Stage::kQueue, 1'000'000, 2'000'000},
              {1, Stage::kPrefill, 90'000'000, 10'000'000},
              {2, Stage::kPrefill, 50'000'000, 0}};
  const Parsed t = parse(p);
  ASSERT_EQ(t.slices.size(), 2u) << "the queue and the request that it is of";
  for (const Json& e : t.slices) {
    EXPECT_EQ(e.at("tid"), 1);
    EXPECT_EQ(ns(e.at("ts")), 0);
    EXPECT_EQ(ns(e.at("dur")), 1'000'000);
  }
  EXPECT_EQ(Json::parse(trace_json(p)).at("otherData").at("clock_errors"), 2);
  const Json stages = Json::parse(profile_json(p)).at("stages");
  EXPECT_EQ(stages.at(0).at("us"), 1000);
  EXPECT_TRUE(stages.at(1).at("us").is_null()) << "unknown, and not -80 ms";
}

}  // namespace
}  // namespace ridge
