// Memory read between the steps of a profile: what it gives moves limits and shows as drift, what takes
// longer than it is unexplained as ever, and no time of the profile holds any of the reading.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "account/flat_machine.h"
#include "account/losses.h"
#include "account/recorder.h"
#include "engine/generate.h"
#include "lab/far_reader.h"
#include "lab/profile.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {
namespace {

constexpr double kFileRate = 1e10;
// Of a machine that no row of the tiny model comes near.
constexpr double kFastRate = 1e13;
Machine fast_machine() {
  return flat_machine(kFastRate, 1e17);
}

/// A memory that gives `rate` bytes a second, in pieces as in one go.
FarReader reader_of(double rate, std::chrono::milliseconds takes = {}) {
  return [=](const StepPlan& plan) {
    FarReading r;
    for (size_t c = 0; c < plan.calls().size(); ++c) {
      const Cost cost = plan.cost(c);
      const int64_t bytes = cost.read_bytes[static_cast<size_t>(DataClass::kWeights)] +
                            cost.read_bytes[static_cast<size_t>(DataClass::kScales)];
      r.bytes += bytes;
      r.stream_us.push_back(static_cast<double>(bytes) / rate * 1e6);
      r.piece_us.push_back(static_cast<double>(bytes) / rate * 1e6);
    }
    std::this_thread::sleep_for(takes);
    return r;
  };
}

/// A prefill and 20 decode steps of a tiny model.
Profile profile_with(FarReader reader, double* elapsed_us = nullptr,
                     const Machine& machine = flat_machine(kFileRate, 1e13)) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 128;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  if (reader) profiler.read_far(std::move(reader));
  engine->set_observer(&profiler);
  const int64_t begin = now_ns();
  generate(*engine, {request(random_prompt(40, 1), 21)});
  if (elapsed_us != nullptr) *elapsed_us = static_cast<double>(now_ns() - begin) / 1e3;
  return profiler.finish(machine, 1);
}

TEST(Drift, memory_that_gives_half_doubles_the_limits_that_it_sets_and_is_stated_beside_the_machine_file) {
  const Profile before = profile_with(nullptr, nullptr, fast_machine()),
                now = profile_with(reader_of(kFastRate / 2), nullptr, fast_machine());
  ASSERT_EQ(now.phases.size(), 2u);
  for (size_t p = 0; p < now.phases.size(); ++p) {
    const ProfilePhase& phase = now.phases[p];
    SCOPED_TRACE(phase_name(phase.phase));
    EXPECT_EQ(before.phases[p].drift.readings, 0);
    // Three at first, then one in eight steps.
    EXPECT_EQ(phase.drift.readings, phase.phase == Phase::kPrefill ? 3 : 5);
    EXPECT_NEAR(phase.drift.now, kFastRate / 2, 1);
    EXPECT_DOUBLE_EQ(phase.drift.file, kFastRate);
    EXPECT_GT(phase.drift.bytes, 0);
    int bound = 0;
    for (size_t i = 0; i < phase.rows.size(); ++i) {
      const Verdict &a = before.phases[p].rows[i].verdict, &b = phase.rows[i].verdict;
      EXPECT_DOUBLE_EQ(b.compute_us, a.compute_us);
      EXPECT_DOUBLE_EQ(b.near_us, a.near_us);
      EXPECT_NEAR(b.far_us, 2 * a.far_us, 1e-6 * a.far_us) << phase.rows[i].op;
      bound += a.bound == Bound::kFarMemory;
      EXPECT_NEAR(b.limit_us + sum_of_losses(b), phase.rows[i].time_us, 1e-6 * phase.rows[i].time_us + 1e-9);
    }
    EXPECT_GT(bound, 0);
  }
  const std::string json = profile_json(now);
  EXPECT_NE(json.find("\"machine_read_gbs\": 10000.0"), std::string::npos);
  EXPECT_EQ(profile_json(before).find("\"drift\""), std::string::npos);
  EXPECT_NE(profile_text(now, false)
                .find("5000.0 GB/s between the steps (median of 5), 10000.0 in the machine file"),
            std::string::npos);
}

TEST(Drift, a_reading_that_a_row_beats_is_no_ceiling_of_that_row) {
  const Profile p = profile_with(reader_of(kFastRate / 1e9), nullptr, fast_machine());
  int64_t rows = 0;
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (r.verdict.bound != Bound::kFarMemory) continue;
      ++rows;
      EXPECT_LE(r.verdict.attainment, 1 + 1e-9) << r.op;
      EXPECT_FALSE(r.verdict.defect) << r.op;
      EXPECT_LE(r.occasion.far_read_rate, kFastRate);
      EXPECT_GT(r.occasion.far_read_rate, kFastRate / 1e9);
      EXPECT_NEAR(r.verdict.limit_us + sum_of_losses(r.verdict), r.time_us, 1e-6 * r.time_us + 1e-9);
    }
  EXPECT_GT(rows, 0);
}

TEST(Drift, a_row_above_the_machine_files_rate_is_a_defect_whatever_was_read) {
  constexpr double kSlow = 1e5;  // bytes a second, which every row of the tiny model beats
  const Profile p = profile_with(reader_of(kSlow / 2), nullptr, flat_machine(kSlow, 1e17));
  int64_t rows = 0;
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (r.verdict.bound != Bound::kFarMemory) continue;
      ++rows;
      EXPECT_TRUE(r.beat_the_reading) << r.op;
      EXPECT_EQ(r.occasion.far_read_rate, kSlow) << r.op;
      EXPECT_TRUE(r.verdict.defect) << r.op;
    }
  EXPECT_GT(rows, 0);
  EXPECT_NE(profile_json(p).find("\"read_gbs\": 0.0001,"), std::string::npos);
}

TEST(Drift, a_processor_that_computes_at_half_doubles_its_limits_and_says_so) {
  const auto computing = [](double flops) {
    return [=, plain = reader_of(kFileRate)](const StepPlan& plan) {
      FarReading r = plain(plan);
      r.flops = flops;
      return r;
    };
  };
  const Profile before = profile_with(computing(1e13)), now = profile_with(computing(5e12));
  for (size_t p = 0; p < now.phases.size(); ++p) {
    EXPECT_DOUBLE_EQ(now.phases[p].drift.arithmetic(), 0.5);
    for (size_t i = 0; i < now.phases[p].rows.size(); ++i) {
      const Verdict &a = before.phases[p].rows[i].verdict, &b = now.phases[p].rows[i].verdict;
      EXPECT_DOUBLE_EQ(b.compute_us, 2 * a.compute_us) << now.phases[p].rows[i].op;
      EXPECT_NEAR(b.far_us, a.far_us, 1e-6 * a.far_us);
    }
  }
  EXPECT_NE(profile_text(now, false).find("f32 arithmetic: 5000 GFLOP/s, 10000 in the machine file"),
            std::string::npos);
  EXPECT_NE(profile_json(now).find("\"machine_f32_gflops\": 10000.0"), std::string::npos);
}

TEST(Drift, a_core_that_reads_its_own_cache_at_half_halves_the_pace_of_kernels_and_no_peak) {
  const auto reading = [](double flops, double near) {
    return [=, plain = reader_of(kFileRate)](const StepPlan& plan) {
      FarReading r = plain(plan);
      r.flops = flops, r.near_read = near;
      return r;
    };
  };
  // The pace of one kernel is known.
  const ProfileRow known = profile_with(nullptr).phases[0].rows[0];
  Machine machine = flat_machine(kFileRate, 1e13);
  machine.kernels.push_back({known.op, known.kernel, known.formats, known.pace_dims, {{1e6, 10}}});
  const Profile before = profile_with(reading(1e13, kFileRate), nullptr, machine),
                now = profile_with(reading(1e13, kFileRate / 2), nullptr, machine),
                slower = profile_with(reading(2.5e12, kFileRate / 2), nullptr, machine);
  EXPECT_DOUBLE_EQ(now.phases[0].drift.pace(), 0.5);
  EXPECT_DOUBLE_EQ(now.phases[0].drift.arithmetic(), 1);
  EXPECT_DOUBLE_EQ(slower.phases[0].drift.pace(), 0.25) << "the slower of the two";
  const ProfileRow &a = before.phases[0].rows[0], &b = now.phases[0].rows[0], &c = slower.phases[0].rows[0];
  EXPECT_GT(a.occasion.kernel_us, 0);
  EXPECT_DOUBLE_EQ(b.occasion.kernel_us, 2 * a.occasion.kernel_us);
  EXPECT_DOUBLE_EQ(c.occasion.kernel_us, 4 * a.occasion.kernel_us);
  EXPECT_DOUBLE_EQ(b.verdict.limit_us, a.verdict.limit_us);
  EXPECT_NE(profile_text(now, false).find("cores read their own caches at 5 GB/s, 10"), std::string::npos);
  EXPECT_NE(profile_json(now).find("\"machine_near_read_gbs\": 10.0"), std::string::npos);
}

TEST(Drift, a_thread_that_loses_its_core_while_it_reads_is_no_drift) {
  // In every reading another call stood still for a millisecond.
  size_t lost = 0;
  const auto still = [&](FarReading r) {
    for (size_t c = lost; c < r.stream_us.size(); c += 7) r.stream_us[c] += 1000, r.piece_us[c] += 1000;
    lost = (lost + 1) % 7;
    return r;
  };
  const FarReader plain = reader_of(kFileRate);
  const Profile p = profile_with([&](const StepPlan& plan) { return still(plain(plan)); });
  ASSERT_EQ(p.phases.size(), 2u);
  for (const ProfilePhase& phase : p.phases) {
    EXPECT_NEAR(phase.drift.now, kFileRate, 1);
    for (const ProfileRow& r : phase.rows) EXPECT_LE(r.occasion.piece_us, 1.001 * r.verdict.far_us) << r.op;
  }
}

TEST(Drift, readings_in_which_a_core_was_lost_are_left_out_and_counted) {
  const FarReader half = reader_of(kFileRate / 2), full = reader_of(kFileRate);
  int reading = 0;
  const auto every = [&](int good) {
    return [&, good](const StepPlan& plan) {
      FarReading r = reading++ % good == 0 ? full(plan) : half(plan);
      r.disturbed = r.stream_us != full(plan).stream_us;
      return r;
    };
  };
  const Profile p = profile_with(every(2));
  ASSERT_EQ(p.phases.size(), 2u);
  EXPECT_EQ(p.phases[0].drift.readings, 3);
  EXPECT_EQ(p.phases[0].drift.disturbed, 2);
  for (const ProfilePhase& phase : p.phases) EXPECT_NEAR(phase.drift.now, kFileRate, 1);

  // Nothing but disturbed ones: the account is that of the machine file.
  const Profile none = profile_with([&](const StepPlan& plan) {
    FarReading r = half(plan);
    r.flops = 1, r.disturbed = true;
    return r;
  });
  const Profile plain = profile_with(nullptr);
  for (size_t i = 0; i < none.phases.size(); ++i) {
    const ProfilePhase& phase = none.phases[i];
    EXPECT_EQ(phase.drift.readings, 0);
    EXPECT_GE(phase.drift.disturbed, 6);
    EXPECT_EQ(phase.drift.arithmetic(), 1);
    EXPECT_DOUBLE_EQ(phase.limit_us(), plain.phases[i].limit_us());
  }
  EXPECT_NE(profile_text(none, false).find("readings of memory left out: a thread lost its core"),
            std::string::npos);
}

/// Two programs that compute for each core of this process, until it ends.
class Neighbours {
 public:
  Neighbours() {
    for (int t = 0; t < 2 * allowed_cores(); ++t)
      threads_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
  }
  ~Neighbours() {
    stop_ = true;
    for (auto& t : threads_) t.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(Drift, a_reader_beside_busy_neighbours_says_when_a_core_was_lost) {
  TinyModel tiny;
  CpuOptions options;
  options.threads = std::min(2, allowed_cores());
  const auto device = CpuDevice::create(options).take();
  const FarReader read = far_reader(*device);
  StepPlan plan(*device);
  const Neighbours neighbours;
  bool disturbed = false;
  for (const int64_t end = now_ns() + 10'000'000'000; !disturbed && now_ns() < end;)
    disturbed = read(plan).disturbed;
  EXPECT_TRUE(disturbed);
}

TEST(Drift, no_time_of_the_profile_holds_any_of_the_reading) {
  double elapsed_us = 0;
  const Profile p = profile_with(reader_of(kFileRate, std::chrono::milliseconds(20)), &elapsed_us);
  int64_t readings = 0;
  double wall_us = 0, between_us = 0;
  for (const ProfilePhase& phase : p.phases) {
    readings += phase.drift.readings;
    wall_us += phase.wall_us, between_us += phase.between_us;
    double rows = 0;
    for (const ProfileRow& r : phase.rows) rows += r.time_us;
    EXPECT_NEAR(rows, phase.wall_us, 1e-6 * phase.wall_us);
  }
  ASSERT_EQ(readings, 8);
  // The request's spans follow each other without gap, and its whole is its steps and what the host did
  // between them.
  ASSERT_FALSE(p.stages.empty());
  for (size_t i = 1; i < p.stages.size(); ++i) EXPECT_EQ(p.stages[i].begin_ns, p.stages[i - 1].end_ns) << i;
  const double whole_us = static_cast<double>(p.stages.back().end_ns - p.stages.front().begin_ns) / 1e3;
  EXPECT_GE(whole_us, wall_us);
  // Steps and what lies between them are all the time from the first to the last.
  EXPECT_GT(between_us, 0);
  EXPECT_NEAR(wall_us + between_us,
              static_cast<double>(p.steps.back().end_ns - p.steps.front().begin_ns) / 1e3, 1);
  // All readings but those after the last step came before the request's end.
  EXPECT_LE(whole_us, elapsed_us - static_cast<double>(readings) * 20e3);
  for (size_t i = 1; i < p.steps.size(); ++i) EXPECT_GE(p.steps[i].begin_ns, p.steps[i - 1].end_ns);
}

TEST(Drift, a_kernel_slower_than_its_pace_beside_memory_that_gives_enough_is_unexplained) {
  Cost cost;
  cost.read_bytes[static_cast<size_t>(DataClass::kWeights)] = 100000;
  Occasion o;
  o.reuse_bytes = 1 << 30;
  o.far_read_rate = 8e9;  // 12.5 us
  o.piece_us = 14;
  o.kernel_us = 20;
  o.measured_us = 25;
  Verdict v = judge(cost, flat_machine(kFileRate, 1e13).at(1), o);
  EXPECT_DOUBLE_EQ(v.limit_us, 12.5);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kShape), 1.5);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kConversion), 6);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kUnexplained), 5);
  o.measured_us = 45;
  v = judge(cost, flat_machine(kFileRate, 1e13).at(1), o);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kUnexplained), 25) << "all that was added";
  // Half of the shorter of the two, reading and the kernel's own time, is known to be exposed.
  o.exposed = 0.5;
  v = judge(cost, flat_machine(kFileRate, 1e13).at(1), o);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kConversion), 13);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kUnexplained), 18);
  // A neighbour who takes half of the memory after the last reading: nothing of that is explained.
  o.measured_us = 50, o.kernel_us = 0;
  EXPECT_DOUBLE_EQ(judge(cost, flat_machine(kFileRate, 1e13).at(1), o).loss(Loss::kUnexplained), 36);
}

TEST(FarReader, reads_the_weights_of_the_calls_that_have_them) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 128;
  const auto engine = engine_for(tiny, o);
  struct Reading final : StepObserver {
    FarReader reader;
    int steps = 0;
    void on_step(const StepFacts&, const StepPlan& plan) override {
      const FarReading r = reader(plan);
      EXPECT_GT(r.flops, 1e8);
      EXPECT_LT(r.flops, 1e14);
      EXPECT_GT(r.near_read, 1e8);
      EXPECT_LT(r.near_read, 1e13);
      ASSERT_EQ(r.stream_us.size(), plan.calls().size());
      ASSERT_EQ(r.piece_us.size(), plan.calls().size());
      int64_t held = 0;
      for (size_t c = 0; c < plan.calls().size(); ++c) {
        const Cost cost = plan.cost(c);
        const bool linear = std::string_view(plan.calls()[c].call.op->name()) == "linear";
        const int64_t far = cost.read_bytes[static_cast<size_t>(DataClass::kWeights)] +
                            cost.read_bytes[static_cast<size_t>(DataClass::kScales)];
        if (far < (16 << 10)) {
          EXPECT_EQ(r.piece_us[c], 0);
          continue;
        }
        EXPECT_TRUE(linear) << plan.calls()[c].call.op->name();
        EXPECT_GT(r.piece_us[c], 0);
        EXPECT_GT(r.stream_us[c], 0);
        held +=
            plan.calls()[c].call.op->operand(plan.calls()[c].call.args.get(), weights_of(plan, c)).bytes();
      }
      // Packed weights are whole tiles; what a call counts of them are its rows.
      EXPECT_LE(r.bytes, held);
      EXPECT_GT(r.bytes, held - held / 10);
      ++steps;
    }
    static int weights_of(const StepPlan& plan, size_t call) {
      const auto& operands = plan.calls()[call].call.op->operands();
      for (size_t i = 0; i < operands.size(); ++i)
        if (std::string_view(operands[i].name) == "w") return static_cast<int>(i);
      return -1;
    }
    void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  } reading;
  reading.reader = far_reader(*tiny.device);
  engine->set_observer(&reading);
  generate(*engine, {request(random_prompt(10, 1), 3)});
  EXPECT_EQ(reading.steps, 3);
}

}  // namespace
}  // namespace ridge
