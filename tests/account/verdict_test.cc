// What a verdict says about counted work on ceilings that are given: the cases A9, A16, A18, A25, and that
// one machine gives prefill and decode opposite verdicts.

#include "account/verdict.h"

#include "account/losses.h"
#include "account/shapes_only.h"
#include "sanitized.h"

namespace ridge {
namespace {

/// A machine of one memory level.
ThreadCeilings flat(double bytes_a_second, double f32 = 0) {
  ThreadCeilings c;
  c.threads = 1;
  const double gb = bytes_a_second / 1e9;
  c.curve = {{1 << 10, gb, gb, gb}, {int64_t{1} << 40, gb, gb, gb}};
  c.pieces = {{1 << 10, gb}, {int64_t{1} << 40, gb}};
  c.flops[size_t(Engine::kF32)] = f32;
  return c;
}
Occasion measured(double us, int64_t reuse = int64_t{1} << 34) {
  Occasion o;
  o.measured_us = us, o.reuse_bytes = reuse;
  return o;
}
TEST(Verdict, launches_that_do_nothing_are_charged_before_what_is_unexplained) {
  Cost cost;
  cost.read_bytes[size_t(DataClass::kWeights)] = 1000000;
  Occasion o = measured(10);
  o.launch_us = 3;
  const Verdict v = judge(cost, flat(1e12), o);
  EXPECT_DOUBLE_EQ(v.limit_us, 1);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kLaunch), 3);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kUnexplained), 6);
  EXPECT_DOUBLE_EQ(v.limit_us + sum_of_losses(v), 10);
}

TEST(Verdict, A9_the_decode_steps_of_T8_have_their_limits) {
  const ThreadCeilings c = flat(4.5e12);
  const std::pair<int64_t, double> cases[] = {{1, 3.395}, {8, 3.813}, {64, 7.153}};
  ShapesOnlyDevice device;
  for (const auto& [b, want_ms] : cases) {
    const auto plan =
        ShapesModel().plan(device, {.decodes = b, .prefills = 0, .prefill_tokens = 0, .logit_rows = b});
    plan->set_counter("decode_keys", b * causal_keys(2047, 1));
    double far_us = 0;
    for (size_t i = 0; i < plan->calls().size(); ++i) {
      const std::string_view op = plan->calls()[i].call.op->name();
      if (op == "linear" || op == "attention_decode") far_us += judge(plan->cost(i), c, measured(1e6)).far_us;
    }
    EXPECT_NEAR(far_us / 1e3, want_ms, 6e-4) << b;
    if (b == 1) {
      EXPECT_NEAR(1e6 / far_us, 294.5, 0.1);  // tokens a second that no run can pass
    }
  }
}

TEST(Verdict, A16_a_time_below_its_own_limit_is_a_defect) {
  Cost c;
  c.read_bytes[size_t(kWeights)] = 4500000000;
  EXPECT_FALSE(judge(c, flat(4.5e12), measured(1000)).defect);
  EXPECT_FALSE(judge(c, flat(4.5e12), measured(960)).defect);  // within what a ceiling's own spread explains
  EXPECT_TRUE(judge(c, flat(4.5e12), measured(500)).defect);   // a batch applied twice
  EXPECT_TRUE(judge(c, flat(4.5e12), measured(1)).defect);     // milliseconds taken for microseconds
}

TEST(Verdict, A16_a_time_a_thousand_times_its_limit_is_a_defect_as_well) {
  Cost c;
  c.read_bytes[size_t(kWeights)] = 4500000000;  // 1000 us
  EXPECT_FALSE(judge(c, flat(4.5e12), measured(990e3)).defect);
  const Verdict late = judge(c, flat(4.5e12), measured(1010e3));  // milliseconds printed for seconds
  EXPECT_TRUE(late.defect);
  EXPECT_STREQ(defect_text(late),
               "below a thousandth of its limit: unit or count is wrong, or the run stood still");
  EXPECT_STREQ(defect_text(judge(c, flat(4.5e12), measured(10))), "above its limit: count or level is wrong");
  EXPECT_STREQ(defect_text(judge(c, flat(4.5e12), measured(2000))), "");
  // 1e-9 tokens a second.
  EXPECT_TRUE(judge(c, flat(4.5e12), measured(1e15)).defect);
  EXPECT_FALSE(judge({}, flat(4.5e12), measured(1e9)).defect) << "without a limit nothing is known";
}

TEST(Verdict, A17_leaving_the_scales_out_reads_three_percent_low) {
  Cost c;
  c.read_bytes[size_t(kWeights)] = 33554432;
  EXPECT_NEAR(judge(c, flat(4.5e12), measured(10)).limit_us, 7.457, 5e-4);
  c.read_bytes[size_t(kScales)] = 1048576;
  EXPECT_NEAR(judge(c, flat(4.5e12), measured(10)).limit_us, 7.690, 5e-4);
}

TEST(Verdict, A18_work_of_two_dtypes_adds_up_at_their_own_peaks) {
  ThreadCeilings c = flat(4.5e12);
  c.flops[size_t(Engine::kFp8)] = 1250e12, c.flops[size_t(Engine::kBf16)] = 700e12;
  Cost cost;
  cost.flops[size_t(Engine::kFp8)] = 6000000000000, cost.flops[size_t(Engine::kBf16)] = 4000000000000;
  const Verdict v = judge(cost, c, measured(20000));
  EXPECT_NEAR(v.compute_us / 1e3, 10.51, 5e-3);
  EXPECT_EQ(v.bound, Bound::kCompute);
}

TEST(Verdict, A18_a_set_without_the_unit_pays_at_its_f32_rate) {
  Cost cost;
  cost.flops[size_t(Engine::kInt8)] = 1000000;
  EXPECT_DOUBLE_EQ(judge(cost, flat(1e12, 1e9), measured(5000)).compute_us, 1000);
}

TEST(Verdict, A25_limit_and_losses_are_the_measured_time_exactly) {
  Cost c;
  c.read_bytes[size_t(kWeights)] = 1 << 20, c.read_bytes[size_t(kActivations)] = 4096;
  c.flops[size_t(Engine::kF32)] = 1 << 22, c.executed_flops[size_t(Engine::kF32)] = 1 << 23;
  for (const double us : {1.0, 50.0, 120.0, 333.3, 1e6}) {
    Occasion o = measured(us);
    o.barrier_us = 10, o.imbalance_us = 20, o.occupancy_us = 7, o.kernel_us = 250, o.calls = 3;
    const Verdict v = judge(c, flat(1e10, 1e11), o);
    EXPECT_NEAR(v.limit_us + sum_of_losses(v), us, 1e-9 * us) << us;
    for (size_t i = 0; i + 1 < kLosses; ++i) EXPECT_GE(v.loss_us[i], 0) << loss_name(Loss(i));
    EXPECT_NEAR(v.attainment, v.limit_us / us, 1e-12);
  }
}

TEST(Verdict, A25_unexplained_keeps_its_sign_and_above_the_limit_is_flagged) {
  Cost c;
  c.read_bytes[size_t(kWeights)] = 107000;
  const Verdict v = judge(c, flat(1e9), measured(100));
  EXPECT_NEAR(v.attainment, 1.07, 1e-12);
  EXPECT_NEAR(v.loss(Loss::kUnexplained), -7, 1e-9);
  EXPECT_TRUE(v.defect);
}

TEST(Verdict, A25_a_metered_loss_is_charged_once_and_never_beyond_what_is_left) {
  Cost c;
  c.read_bytes[size_t(kWeights)] = 90000;
  Occasion o = measured(100);
  o.barrier_us = 6, o.imbalance_us = 50;
  const Verdict v = judge(c, flat(1e9), o);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kBarrier), 6);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kImbalance), 4);
  EXPECT_DOUBLE_EQ(v.loss(Loss::kUnexplained), 0);
}

/// Prices decode steps of these numbers of sequences with 2,048 of context each, call by call.
void expect_no_fall(const ShapesModel& model, const std::vector<int64_t>& batches) {
  const ThreadCeilings c = flat(4.5e12, 700e12);
  double before_us = 0, before_rate = 0;
  int compute_bound = 0;
  for (const int64_t b : batches) {
    ShapesOnlyDevice device;
    const auto plan = model.plan(device, {.decodes = b, .prefills = 0, .prefill_tokens = 0, .logit_rows = b});
    plan->set_counter("decode_pairs", b * 2048), plan->set_counter("decode_keys", b * 2048);
    plan->set_counter("tokens_written", b);
    plan->set_chunks("decode", std::vector<QueryChunk>(static_cast<size_t>(b), {2047, 1}));
    double step_us = 0;
    for (size_t i = 0; i < plan->calls().size(); ++i) {
      const Verdict v = judge(plan->cost(i), c, measured(0));
      step_us += v.limit_us;
      compute_bound += v.bound == Bound::kCompute;
    }
    ASSERT_GE(step_us, before_us * (1 - 1e-12)) << b;
    const double rate = static_cast<double>(b) / step_us;
    ASSERT_GE(rate, before_rate * (1 - 1e-12)) << b << ": tokens a second fall, and no term says why";
    before_us = step_us, before_rate = rate;
  }
  EXPECT_GT(compute_bound, 0) << "both sides of the roofline are met: reading binds first, then arithmetic";
}

TEST(Verdict, A46_a_step_of_more_sequences_is_never_predicted_shorter_nor_a_token_dearer) {
  ShapesModel t8;
  t8.layers = 1;
  std::vector<int64_t> every, some;
  for (int64_t b = 1; b <= 512; ++b) {
    const bool two = (b & (b - 1)) == 0;
    if (two || !kSanitized) every.push_back(b);
    if (two) some.push_back(b);
  }
  expect_no_fall(t8, some);
  // Every number on an eighth of the widths: such a plan costs what its activations take to make.
  ShapesModel eighth;
  eighth.layers = 1, eighth.hidden = 512, eighth.heads = 4, eighth.kv_heads = 1, eighth.inner = 1792;
  eighth.vocab = 1024;
  expect_no_fall(eighth, every);
}

TEST(Verdict, A25_padding_that_was_executed_is_a_loss_of_shape) {
  Cost c;
  c.flops[size_t(Engine::kF32)] = 1000000, c.executed_flops[size_t(Engine::kF32)] = 1500000;
  const Verdict v = judge(c, flat(1e12, 1e10), measured(200));
  EXPECT_DOUBLE_EQ(v.compute_us, 100);
  EXPECT_NEAR(v.loss(Loss::kShape), 50, 1e-9);
  EXPECT_NEAR(v.loss(Loss::kUnexplained), 50, 1e-9);
}

TEST(Verdict, A25_padding_that_hides_behind_memory_is_no_loss) {
  Cost c;
  c.flops[size_t(Engine::kF32)] = 1000000, c.executed_flops[size_t(Engine::kF32)] = 1500000;
  c.read_bytes[size_t(DataClass::kKv)] = 120000000;
  const Verdict v = judge(c, flat(1e12, 1e10), measured(200));
  EXPECT_EQ(v.bound, Bound::kFarMemory);
  EXPECT_DOUBLE_EQ(v.limit_us, 120);
  EXPECT_NEAR(v.loss(Loss::kShape), 30, 1e-9) << "150 us of arithmetic, 120 of which were waited for anyway";
  EXPECT_NEAR(v.loss(Loss::kUnexplained), 50, 1e-9);
}

TEST(Verdict, A25_conversion_is_what_the_kernel_itself_takes_beyond_limit_and_padding) {
  Cost c;
  c.flops[size_t(Engine::kF32)] = 1000000, c.executed_flops[size_t(Engine::kF32)] = 1200000;
  Occasion o = measured(200);
  o.kernel_us = 150;  // its padding included
  const Verdict v = judge(c, flat(1e12, 1e10), o);
  EXPECT_DOUBLE_EQ(v.limit_us, 100);
  EXPECT_NEAR(v.loss(Loss::kShape), 20, 1e-9);
  EXPECT_NEAR(v.loss(Loss::kConversion), 30, 1e-9);
  EXPECT_NEAR(v.loss(Loss::kUnexplained), 50, 1e-9);
  // Whatever the run took: what was probed before it does not grow with it.
  for (const double us : {400.0, 1e4, 1e6}) {
    o.measured_us = us;
    const Verdict slow = judge(c, flat(1e12, 1e10), o);
    EXPECT_NEAR(slow.loss(Loss::kConversion), 30, 1e-9);
    EXPECT_NEAR(slow.loss(Loss::kUnexplained), us - 150, 1e-6);
  }
}

TEST(Verdict, a_kernel_that_waits_for_memory_anyway_loses_nothing_by_its_own_work) {
  Cost c;
  c.read_bytes[size_t(kWeights)] = 1000000;
  Occasion o = measured(130);
  o.kernel_us = 90;  // below the 100 of the limit
  const Verdict v = judge(c, flat(1e10), o);
  EXPECT_EQ(v.loss(Loss::kConversion), 0);
  EXPECT_NEAR(v.loss(Loss::kUnexplained), 30, 1e-9);
}

TEST(Verdict, bytes_are_priced_at_the_level_where_they_live) {
  ThreadCeilings c = flat(1e10);
  c.curve = {{1 << 14, 100, 100, 100}, {1 << 30, 10, 10, 10}};
  Cost cost;
  cost.read_bytes[size_t(kWeights)] = 10000;
  EXPECT_NEAR(judge(cost, c, measured(5, 1 << 14)).far_us, 0.1, 1e-9);
  EXPECT_NEAR(judge(cost, c, measured(5, 1 << 30)).far_us, 1.0, 1e-9);
  // Between the points the rate is between theirs.
  const double middle = judge(cost, c, measured(5, 1 << 22)).far_us;
  EXPECT_GT(middle, 0.1);
  EXPECT_LT(middle, 1.0);
}

TEST(Verdict, an_empty_call_is_bound_by_nothing) {
  const Verdict v = judge({}, flat(1e10, 1e10), measured(3));
  EXPECT_EQ(v.bound, Bound::kNothing);
  EXPECT_EQ(v.limit_us, 0);
  EXPECT_EQ(v.loss(Loss::kUnexplained), 3);
}

TEST(Verdict, one_machine_gives_prefill_and_decode_opposite_verdicts) {
  const ThreadCeilings c = flat(20e9, 200e9);  // a small CPU: 10 FLOP a byte
  ShapesOnlyDevice device;
  ShapesModel t8;
  t8.layers = 1;
  const auto prefill = t8.plan(device, {.decodes = 0, .prefills = 1, .prefill_tokens = 512, .logit_rows = 1}),
             decode = t8.plan(device, {.decodes = 1, .prefills = 0, .prefill_tokens = 0, .logit_rows = 1});
  int judged = 0;
  for (const char* label : {"q", "k", "v", "o", "gate", "up", "down"}) {
    const std::string at = text("layer 0 ", label);
    EXPECT_EQ(judge(cost_of(*prefill, "linear", at), c, measured(1e9)).bound, Bound::kCompute) << at;
    EXPECT_EQ(judge(cost_of(*decode, "linear", at), c, measured(1e9)).bound, Bound::kFarMemory) << at;
    ++judged;
  }
  EXPECT_EQ(judged, 7);
  // The head runs on one row in both: its verdict is its own, not its phase's.
  EXPECT_EQ(judge(cost_of(*prefill, "linear", "logits head"), c, measured(1e9)).bound, Bound::kFarMemory);
}

}  // namespace
}  // namespace ridge
