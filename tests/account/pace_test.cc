// The probe's pace of a kernel explains that kernel's own time and nothing else: a kernel that is slower than
// it was when probed, or whose core is shared, shows as unexplained and never as conversion.

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cmath>
#include <thread>

#include "account/flat_machine.h"
#include "account/recorder.h"
#include "lab/example_profile.h"
#include "lab/probe.h"
#include "lab/probe_kernels.h"
#include "lab/profile.h"
#include "machine/plausible.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/registry.h"

namespace ridge {

/// y = x after a chain of roots: nothing but a kernel's own instructions, as many as `repeats` says.
struct SpinArgs {
  Tensor y, x;
};
RIDGE_OPERATOR(SpinArgs, describe_spin)

namespace {

int repeats = 1;

Status spin(Stream&, const SpinArgs& a) {
  for (int r = 0; r < repeats; ++r)
    for (int64_t i = 0; i < a.x.dim(0); ++i) {
      float v = std::fabs(a.x.as<float>()[i]);
      for (int k = 0; k < 8; ++k) v = std::sqrt(v + 1);
      a.y.as<float>()[i] = v;
    }
  return {};
}

Registered<SpinArgs>& spin_operator() {
  static Registered<SpinArgs>* const op = [] {
    auto* made = new Registered<SpinArgs>(describe_spin());
    made->add("cpu", Isa::scalar, [](Kernels<SpinArgs>& kernels) {
      kernels.add(
          "spin_roots", [](const SpinArgs&) { return Decline{}; }, spin);
    });
    return made;
  }();
  return *op;
}

}  // namespace

Operator<SpinArgs> describe_spin() {
  Operator<SpinArgs> op;
  op.name = "spin";
  op.operands = {{"y", &SpinArgs::y, kOut, kActivations, "n", {kF32}},
                 {"x", &SpinArgs::x, kIn, kActivations, "n", {kF32}}};
  op.flops = [](const Dims& d) { return 16 * d["n"]; };
  op.case_dims = "n";
  op.pace = {{{256}}, {{1024}}};
  return op;
}
template <>
AnyOperator& registered<SpinArgs>() {
  return spin_operator();
}

namespace {

class ProbedKernel : public testing::Test {
 protected:
  std::unique_ptr<CpuDevice> device_ = CpuDevice::create({.threads = 1}).take();
  Machine machine_ = flat_machine(1e12, 1e12);

  void SetUp() override {
    repeats = 1;
    auto measured = measure_pace(*device_, {&spin_operator()}, {});
    ASSERT_TRUE(measured.ok()) << measured.status().message();
    ASSERT_EQ(measured->size(), 1u);
    EXPECT_EQ(measured->front().kernel, "spin_roots");
    ASSERT_EQ(measured->front().points.size(), 2u);
    EXPECT_EQ(measured->front().points[0].work, 16 * 256);
    machine_.kernels = measured.take();
  }

  /// The row of one call of `n` elements: of `runs`, the one that took least.
  ProfileRow row(int64_t n, int runs) {
    StepPlan plan(*device_);
    const Tensor x = plan.input("x", kF32, {n}), y = plan.output("y", kF32, {n});
    plan.call("spin", SpinArgs{y, x});
    EXPECT_TRUE(plan.finish({}).ok());
    const auto stream = device_->create_stream().take();
    ProfileRow best;
    for (int i = 0; i < runs; ++i) {
      StepFacts facts;
      facts.phase = Phase::kDecode, facts.decode_tokens = 1;
      facts.calls.resize(1);
      facts.begin_ns = facts.calls_begin_ns = now_ns();
      EXPECT_TRUE(plan.run(*stream, &facts.calls).ok());
      facts.end_ns = now_ns();
      EXPECT_TRUE(plan.read_times(*stream, facts.end_ns, &facts.calls).ok());
      Profiler profiler(false);
      profiler.on_step(facts, plan);
      const Profile p = profiler.finish(machine_, 1);
      if (i == 0 || p.phases[0].rows[0].time_us < best.time_us) best = p.phases[0].rows[0];
    }
    EXPECT_EQ(best.op, "spin");
    return best;
  }
};

TEST_F(ProbedKernel, is_explained_by_its_own_pace) {
  const ProfileRow r = row(2048, 60);
  EXPECT_GT(r.verdict.loss(Loss::kConversion), 0.5 * r.time_us);
  EXPECT_LT(r.verdict.loss(Loss::kUnexplained), 0.3 * r.time_us);
}

TEST_F(ProbedKernel, that_became_slower_is_unexplained_and_not_conversion) {
  const ProfileRow before = row(2048, 60);
  repeats = 4;
  const ProfileRow after = row(2048, 60);
  ASSERT_GT(after.time_us, 2.5 * before.time_us);
  EXPECT_LE(after.verdict.loss(Loss::kConversion), 1.02 * after.occasion.kernel_us);
  EXPECT_DOUBLE_EQ(after.occasion.kernel_us, before.occasion.kernel_us);
  // All that was added.
  EXPECT_GT(after.verdict.loss(Loss::kUnexplained), 0.85 * (after.time_us - before.time_us));
  EXPECT_GT(after.verdict.loss(Loss::kUnexplained), 0.5 * after.time_us);
}

TEST_F(ProbedKernel, whose_instructions_had_to_come_is_launch_as_far_as_probed) {
  const double start = machine_.kernels[0].start_us;
  EXPECT_GE(start, 0);
  machine_.kernels[0].start_us = 0;
  const ProfileRow before = row(2048, 60);
  EXPECT_EQ(before.verdict.loss(Loss::kLaunch), 0);
  machine_.kernels[0].start_us = 0.125 * before.time_us;
  const ProfileRow after = row(2048, 60);
  // One thread of one: no part of it is another thread's idleness.
  EXPECT_NEAR(after.verdict.loss(Loss::kLaunch), machine_.kernels[0].start_us, 0.01 * before.time_us);
}

TEST_F(ProbedKernel, on_a_core_that_another_thread_uses_is_unexplained) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> stop{false};
  std::thread neighbour([&] {  // inherits the core
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  // Long enough for several turns of the two.
  const auto n = static_cast<int64_t>(60e3 / kernel_us(machine_, {"spin", "", "", {}}, 16 * 1e6, 1) * 1e6);
  const ProfileRow r = row(n, 3);
  stop = true;
  neighbour.join();
  sched_setaffinity(0, sizeof all, &all);
  EXPECT_GT(r.verdict.loss(Loss::kUnexplained), 0.25 * r.time_us) << r.time_us << " us";
  EXPECT_LE(r.verdict.loss(Loss::kConversion), r.occasion.kernel_us);
}

// A point that something else disturbed is found by the line through it, which prices work far beyond it.
TEST(SettlePoints, a_disturbed_point_is_measured_again_and_the_shorter_time_kept) {
  // As a probe of a noisy machine measured them, of 32 and 96 rows; what comes again is made up.
  std::vector<PacePoint> points = {{32, 87.4}, {96, 129.7}};
  int asked = 0;
  const auto again = [&](size_t i) -> Result<double> {
    ++asked;
    return i == 0 ? 45.0 : 131.0;
  };
  ASSERT_TRUE(settle_points(&points, 2, again).ok());
  EXPECT_EQ(asked, 2) << "one round was enough";
  EXPECT_EQ(points[0].us, 45.0);
  EXPECT_EQ(points[1].us, 129.7);
}

TEST(SettlePoints, a_fixed_part_below_nothing_is_measured_again_as_often_as_was_said) {
  std::vector<PacePoint> points = {{32, 62.0}, {96, 250.0}};
  int asked = 0;
  ASSERT_TRUE(settle_points(&points, 3, [&](size_t i) -> Result<double> {
                return ++asked, i == 0 ? 63.0 : 251.0;
              }).ok());
  EXPECT_EQ(asked, 6);
  EXPECT_EQ(points[1].us, 250.0) << "a longer time replaces none";
}

TEST(SettlePoints, what_a_kernel_can_be_is_left_alone_and_an_error_ends_it) {
  std::vector<PacePoint> points = {{32, 40.0}, {96, 100.0}, {288, 290.0}}, one = {{32, 40.0}};
  const auto never = [](size_t) -> Result<double> { return invalid_argument("asked for"); };
  EXPECT_TRUE(settle_points(&points, 3, never).ok());
  EXPECT_TRUE(settle_points(&one, 3, never).ok());
  points[2].us = 110;
  EXPECT_EQ(settle_points(&points, 3, never).message(), "asked for");
}

TEST(MeasuredPace, has_every_kv_format_and_the_dims_that_the_account_asks_for) {
  const auto device = CpuDevice::create({.threads = 1}).take();
  PaceOptions quick;
  quick.seconds_per_point = 0;
  const auto measured = measure_pace(*device, {find_operator("kv_write")}, quick);
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  std::set<std::string> formats;
  for (const KernelPace& k : *measured) {
    formats.insert(k.formats);
    EXPECT_EQ(k.kernel, "kv_write_by_token");
    ASSERT_EQ(k.points.size(), 2u);
    EXPECT_LT(k.points[0].work, k.points[1].work);
    EXPECT_GT(k.points[0].us, 0);
    EXPECT_EQ(k.dims.size(), 2u);
    EXPECT_GE(k.start_us, 0);
    EXPECT_EQ(k.exposed, 0) << "it reads neither weights nor a cache";
  }
  EXPECT_EQ(formats, (std::set<std::string>{"f32 f32", "f16 f16", "bf16 bf16", "i8 i8"}));
}

TEST(MeasuredPace, in_a_hurry_every_point_is_measured_and_at_the_end_none) {
  const auto device = CpuDevice::create({.threads = 1}).take();
  PaceOptions late;
  late.seconds_per_point = 60;  // if the hurry were not heeded, this would be felt
  late.hurry_ns = 0;
  const auto measured = measure_pace(*device, {find_operator("kv_write")}, late);
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  ASSERT_FALSE(measured->empty());
  for (const KernelPace& k : *measured) {
    ASSERT_EQ(k.points.size(), 2u);
    EXPECT_GT(k.points[0].us, 0);
  }
  late.end_ns = 0;
  EXPECT_EQ(measure_pace(*device, {find_operator("kv_write")}, late).status().code(), Code::kDeclined);
}

TEST(Probe, on_a_busy_machine_ends_by_itself_with_every_figure_or_says_that_it_is_not_through) {
  ProbeOptions o;
  o.threads = 1, o.largest_bytes = 1 << 20;
  o.seconds_per_point = 60;  // if the hurry were not heeded, this would be felt
  o.hurry_after_s = 0;
  const auto hurried = probe_cpu(o);
  ASSERT_TRUE(hurried.ok()) << hurried.status().message();
  EXPECT_TRUE(check_machine(*hurried).ok()) << check_machine(*hurried).message();
  EXPECT_FALSE(hurried->kernels.empty());
  o.end_after_s = 0;
  const auto unfinished = probe_cpu(o);
  EXPECT_EQ(unfinished.status().code(), Code::kDeclined);
  EXPECT_NE(unfinished.status().message().find("not idle"), std::string::npos);
}

TEST(MeasuredPace, the_operators_of_a_step_say_on_what_to_measure_them) {
  for (const char* op :
       {"add", "add_rms_norm", "attention_decode", "attention_prefill", "embedding", "gather_rows",
        "gelu_mul", "kv_write", "linear", "quantize_rows", "rms_norm", "rope", "sample", "silu_mul"})
    EXPECT_GT(find_operator(op)->pace_cases(), 0u) << op;
}

TEST(Pace, attention_is_as_many_of_the_measured_calls_as_it_has_kv_heads_and_sequences) {
  std::array<float, 4> some{};
  AttentionDecodeArgs decode;
  decode.q = Tensor(some.data(), kF32, {2, 9, 64}),
  decode.k_pages = Tensor(some.data(), kF32, {8, 3, 16, 64});
  const std::vector<int64_t> of_decode = find_operator("attention_decode")->pace_dims(&decode);
  EXPECT_EQ(of_decode, (std::vector<int64_t>{64, 3, 6}));
  AttentionPrefillArgs prefill;
  prefill.q = Tensor(some.data(), kF32, {64, 9, 64}), prefill.k_pages = decode.k_pages;
  prefill.kv_length = Tensor(some.data(), kI64, {2});
  const std::vector<int64_t> of_prefill = find_operator("attention_prefill")->pace_dims(&prefill);
  EXPECT_EQ(of_prefill, (std::vector<int64_t>{64, 3, 6, 32}));
  // What one call does once, it does for each of them: 5 us of 25.
  Machine m = example_machine();
  m.kernels.push_back({"attention_prefill", "k", "f32 f32", {64, 3, 1, 32}, {{1000, 15}, {2000, 25}}, 0, 0});
  const PaceQuery query{"attention_prefill", "k", "f32 f32", of_prefill};
  EXPECT_DOUBLE_EQ(kernel_us(m, query, 6 * 2000, 1), 6 * 25);
}

}  // namespace
}  // namespace ridge
