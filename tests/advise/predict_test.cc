#include "advise/predict.h"
#include "advise/row_change.h"

#include <gtest/gtest.h>

#include "advise/effects.h"
#include "advise/fused.h"
#include "advise/row_change.h"
#include "lab/example_profile.h"

namespace ridge {
namespace {

double wall(const Profile& p) {
  double us = 0;
  for (const ProfilePhase& phase : p.phases) us += phase.wall_us;
  return us;
}

TEST(Predict, int8_activations_pay_where_unpacking_and_f32_arithmetic_bind) {
  const Profile p = example_profile();
  const LeverJudgement j = predict(p, {"activations", "f32", "int8"}, kFused);
  ASSERT_TRUE(j.predicted);
  EXPECT_FALSE(j.declined) << j.reason;
  // Prefill's linear: 17.18 GFLOP at 80 GFLOP/s with two threads, then at 400: 214.7 ms -> 42.9 ms.
  const double saved = 17.179869184e9 * (1 / 80e9 - 1 / 400e9) * 1e6 / wall(p);
  EXPECT_LE(j.gain.low, saved);
  EXPECT_GE(j.gain.high, saved * 0.98);
  EXPECT_GT(j.gain.low, 0.5);
  EXPECT_NE(j.reason.find("compute"), std::string::npos) << j.reason;
}

TEST(Predict, the_way_back_to_f32_is_priced_as_slower_and_declined) {
  const LeverJudgement j = predict(example_profile(true), {"activations", "int8", "f32"}, kFused);
  ASSERT_TRUE(j.predicted);
  EXPECT_TRUE(j.declined);
  EXPECT_LT(j.gain.high, 0);
  EXPECT_EQ(j.reason.rfind("slower", 0), 0u) << j.reason;
}

TEST(Predict, smaller_kv_pays_where_decode_reads_the_cache_from_memory) {
  Profile p = example_profile(true);
  p.phases.erase(p.phases.begin());  // decode alone
  const LeverJudgement q8 = predict(p, {"kv", "f16", "q8"}, kFused);
  ASSERT_TRUE(q8.predicted);
  EXPECT_FALSE(q8.declined) << q8.reason;
  // 128 MiB of f16 codes become 64 MiB of codes and 4 bytes a head of 128: (64 + 2) / 128 of the bytes are
  // left.
  const ProfileRow& attention = p.phases[0].rows[1];
  EXPECT_NEAR(q8.gain.high, attention.time_us * (1 - 66.0 / 128) / wall(p),
              0.03 * attention.time_us / wall(p));
  const LeverJudgement f32 = predict(p, {"kv", "f16", "f32"}, kFused);
  EXPECT_TRUE(f32.declined);
  EXPECT_LT(f32.gain.high, 0);
  EXPECT_NEAR(f32.gain.value, -attention.time_us / wall(p), 0.1);
}

TEST(Predict, a_kv_format_is_priced_at_the_pace_of_the_kernel_that_reads_it) {
  Profile p = example_profile();
  p.phases.pop_back();  // prefill alone: 4 calls of attention, 100 MFLOP each
  p.machine.kernels.push_back({"attention_prefill", "a", "f16 f16", {}, {{1e8, 2500}}});
  p.machine.kernels.push_back({"attention_prefill", "b", "f32 f32", {}, {{1e8, 1200}}});
  ProfileRow& attention = p.phases[0].rows[1];
  ASSERT_EQ(attention.op, "attention_prefill");
  attention.occasion.kernel_us = 4 * 2500 / 2;  // two threads
  attention.verdict = judge(attention.cost, p.machine.at(2), attention.occasion);
  const LeverJudgement j = predict(p, {"kv", "f16", "f32"}, kFused);
  ASSERT_TRUE(j.predicted) << j.reason;
  // 5000 us become 4 x 1200 / 2, although twice the bytes are read.
  EXPECT_GT(j.gain.low, 0) << j.reason;
  EXPECT_NEAR(j.gain.value, 2600 / wall(p), 200 / wall(p));
  EXPECT_LT(predict(p, {"kv", "f16", "bf16"}, kFused).gain.high, 0.01) << "no pace known: no promise";
}

TEST(Predict, a_lever_whose_term_does_not_bind_is_declined_with_the_reason) {
  Profile p = example_profile();
  p.phases.pop_back();  // prefill alone: attention is compute-bound, and small
  const LeverJudgement j = predict(p, {"kv", "f16", "q8"}, kFused);
  ASSERT_TRUE(j.predicted);
  EXPECT_TRUE(j.declined);
  EXPECT_NE(j.reason.find("its term does not bind"), std::string::npos) << j.reason;
  EXPECT_NE(j.reason.find("compute 100 %"), std::string::npos) << j.reason;
}

TEST(Predict, a_format_equal_in_bytes_promises_nothing) {
  const LeverJudgement j = predict(example_profile(), {"kv", "f16", "bf16"}, kFused);
  EXPECT_TRUE(j.declined);
  EXPECT_LT(j.gain.high, 0.05);
  EXPECT_GT(j.gain.low, -0.05);
}

TEST(Predict, A35_a_queue_is_not_a_kernels_fault) {
  Profile p = example_profile();
  p.stages = {{1, Stage::kQueue, 0, 9'500}, {1, Stage::kPrefill, 9'500, 10'000}};
  EXPECT_NEAR(queue_share(p), 0.95, 1e-12);
  for (const Lever& lever : levers_of(p, kFused)) {
    const LeverJudgement j = predict(p, lever, kFused);
    EXPECT_TRUE(j.declined);
    EXPECT_FALSE(j.predicted);
    EXPECT_NE(j.reason.find("queueing"), std::string::npos);
  }
}

TEST(Predict, A33_a_span_that_ends_before_it_begins_is_no_share_of_the_queue) {
  Profile p = example_profile();
  p.stages = {{1, Stage::kQueue, 0, 500}, {1, Stage::kQueue, 9'000, 0}, {1, Stage::kPrefill, 500, 1'000}};
  EXPECT_NEAR(queue_share(p), 0.5, 1e-12);
}

TEST(Predict, A25_a_row_above_its_limit_gives_no_advice) {
  Profile p = example_profile();
  for (ProfilePhase& phase : p.phases)
    for (ProfileRow& r : phase.rows) r.verdict.defect = true;
  const LeverJudgement j = predict(p, {"activations", "f32", "int8"}, kFused);
  EXPECT_FALSE(j.predicted);
  EXPECT_TRUE(j.declined);
}

TEST(Predict, one_thread_instead_of_two_is_slower_where_compute_binds) {
  const LeverJudgement j = predict(example_profile(), {"threads", "2", "1"}, kFused);
  ASSERT_TRUE(j.predicted);
  EXPECT_TRUE(j.declined);
  EXPECT_LT(j.gain.value, -0.5);
  const LeverJudgement back = predict(example_profile(false, 1), {"threads", "1", "2"}, kFused);
  EXPECT_GT(back.gain.low, 0.2);
  EXPECT_FALSE(predict(example_profile(), {"threads", "2", "7"}, kFused).predicted);
}

TEST(Predict, A2_chunks_read_the_cache_as_often_as_counted_by_hand) {
  // 1000 in chunks of 256: 256 + 512 + 768 + 1000 cached tokens are read, in 4 steps.
  EXPECT_EQ(chunks_of(1000, 1, 256).steps, 4);
  EXPECT_EQ(chunks_of(1000, 1, 256).keys, 2536);
  EXPECT_EQ(chunks_of(1000, 1, 1000).keys, 1000);
  EXPECT_EQ(chunks_of(1000, 1, 4096).keys, 1000);
  // Three of 100, 128 a step: 100 and 28; 72 (100 cached) and 56; 44 (100 cached).
  EXPECT_EQ(chunks_of(100, 3, 128).steps, 3);
  EXPECT_EQ(chunks_of(100, 3, 128).keys, 100 + 28 + 100 + 56 + 100);
  EXPECT_EQ(chunks_of(100, 3, 300).steps, 1);
}

TEST(Predict, a_chunk_that_changes_no_step_is_declined) {
  const LeverJudgement j = predict(example_profile(), {"prefill-chunk", "128", "256"}, kFused);
  EXPECT_FALSE(j.predicted);
  EXPECT_TRUE(j.declined);
  EXPECT_NE(j.reason.find("1 step either way"), std::string::npos) << j.reason;
}

TEST(Predict, smaller_chunks_never_promise_a_gain_where_compute_binds) {
  double before = 1;
  for (const int chunk : {64, 32, 16, 8, 1}) {
    const LeverJudgement j = predict(example_profile(), {"prefill-chunk", "128", text(chunk)}, kFused);
    ASSERT_TRUE(j.predicted) << chunk;
    EXPECT_TRUE(j.declined) << chunk;
    EXPECT_LE(j.gain.low, before) << "more steps, more weight reads, never a better worst case";
    before = j.gain.low + 1e-9;
  }
}

TEST(Predict, as_many_tokens_in_other_pieces_are_less_sure_than_a_row_repeats) {
  const Profile p = example_profile();
  const ProfilePhase& prefill = p.phases.front();
  for (const ProfileRow& r : prefill.rows) {
    if (r.op != "linear") continue;
    RowChange other = unchanged(p, r);
    const Interval same = changed_time(p, prefill, r, other);
    EXPECT_LE(same.high - r.time_us, 0.021 * r.time_us);
    other.calls_ratio = 2;
    const Interval pieces = changed_time(p, prefill, r, other);
    EXPECT_GE(pieces.high - r.time_us, 0.049 * r.time_us);
  }
}

TEST(Predict, fusing_two_calls_saves_between_a_read_and_the_shorter_call) {
  Profile p = example_profile();
  ProfilePhase& decode = p.phases[1];
  Cost moved;
  moved.read_bytes[at(DataClass::kActivations)] = moved.written_bytes[at(DataClass::kActivations)] = 3276800;
  decode.rows.insert(decode.rows.begin(), example_row(p.machine, 2, "add", "1x4096", "", 8, moved, 4000, 0));
  decode.rows.insert(decode.rows.begin(),
                     example_row(p.machine, 2, "rms_norm", "1x4096", "f32", 8, moved, 6000, 0));
  decode.wall_us += 10000;
  const LeverJudgement j = predict(p, {"fuse-add_rms_norm", "off", "on"}, kFused);
  ASSERT_TRUE(j.predicted) << j.reason;
  EXPECT_GT(j.gain.low, 0);
  EXPECT_NEAR(j.gain.high, 4000 / wall(p), 1e-9);
  EXPECT_FALSE(predict(example_profile(), {"fuse-add_rms_norm", "off", "on"}, kFused).predicted);
}

TEST(Predict, runs_that_differ_widen_the_interval) {
  const Profile calm = example_profile();
  Profile busy = calm;
  for (ProfilePhase& phase : busy.phases)
    for (ProfileRow& r : phase.rows) {
      phase.wall_us += r.time_us;
      r.verdict.loss(Loss::kBarrier) += r.time_us, r.time_us *= 2;
    }
  const Lever lever{"activations", "f32", "int8"};
  const Interval one = predict(calm, lever, kFused).gain, other = predict(busy, lever, kFused).gain,
                 both = predict({calm, busy}, lever, kFused).gain;
  EXPECT_LT(other.high, one.low);
  EXPECT_EQ(both.low, other.low);
  EXPECT_EQ(both.high, one.high);
}

TEST(Predict, every_lever_of_a_profile_is_listed_once) {
  const auto levers = levers_of(example_profile(), kFused);
  for (size_t i = 0; i < levers.size(); ++i) {
    EXPECT_NE(levers[i].from, levers[i].to) << levers[i].name;
    for (size_t k = 0; k < i; ++k)
      EXPECT_FALSE(levers[i].name == levers[k].name && levers[i].to == levers[k].to) << levers[i].name;
  }
  // activations, three KV formats, one thread, chunks 64 and 256, one fusion.
  EXPECT_EQ(levers.size(), 8u);
}

TEST(Predict, the_largest_lower_bound_is_chosen_not_the_largest_promise) {
  const LeverJudgement wide{{"a", "", ""}, true, false, "", {0.01, 0.3, 0.6}},
      sure{{"b", "", ""}, true, false, "", {0.1, 0.12, 0.14}},
      open{{"c", "", ""}, true, true, "", {-0.5, 0.2, 0.9}};
  EXPECT_EQ(choose({wide, sure, open}), 1);
}

TEST(Predict, without_a_sure_gain_the_open_lever_that_may_gain_most_is_tested) {
  const LeverJudgement small{{"a", "", ""}, true, true, "", {-0.01, 0.005, 0.02}},
      large{{"b", "", ""}, true, true, "", {-0.3, -0.1, 0.1}},
      loss{{"c", "", ""}, true, true, "", {-0.4, -0.3, -0.2}};
  EXPECT_EQ(choose({small, large, loss}), 1);
  EXPECT_EQ(purpose_of(large), Purpose::kOpen);
  EXPECT_EQ(purpose_of(loss), Purpose::kControl);
}

TEST(Predict, where_nothing_may_gain_the_nearest_visible_loss_checks_the_account) {
  const LeverJudgement nothing{{"a", "", ""}, true, true, "", {-0.003, 0, 0.003}},
      near{{"b", "", ""}, true, true, "", {-0.2, -0.1, -0.05}},
      far{{"c", "", ""}, true, true, "", {-3, -2, -1}}, unpriced{{"d", "", ""}, false, true, "", {}};
  EXPECT_EQ(choose({far, nothing, near, unpriced}), 2);
  EXPECT_EQ(choose({nothing, unpriced}), 0) << "better a small question than none";
  EXPECT_EQ(choose({unpriced}), -1);
  EXPECT_EQ(choose({}), -1);
}

TEST(Predict, unknown_levers_and_formats_are_refused_by_name) {
  for (const Lever& lever :
       {Lever{"colour", "", "red"}, Lever{"kv", "f16", "q3"}, Lever{"activations", "f32", "fp8"}}) {
    const LeverJudgement j = predict(example_profile(), lever, kFused);
    EXPECT_FALSE(j.predicted);
    EXPECT_NE(j.reason.find(lever.name == "colour" ? "colour" : lever.to), std::string::npos) << j.reason;
  }
}

TEST(RowChange, a_row_that_changes_nothing_keeps_its_time) {
  const Profile p = example_profile();
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (r.op == "host") continue;
      const Interval t = changed_time(p, phase, r, unchanged(p, r));
      EXPECT_TRUE(t.contains(r.time_us)) << r.op;
      EXPECT_NEAR(t.value, r.time_us, 0.5 * r.time_us) << r.op << " " << t.low << " " << t.high;
    }
}

TEST(RowChange, what_a_kernel_leaves_exposed_beside_reading_is_part_of_the_prediction) {
  Profile p = example_profile(true);
  const ProfilePhase& decode = p.phases[1];
  const ProfileRow& linear = decode.rows[0];
  RowChange f32 = unchanged(p, linear);
  f32.formats = "q4_1", f32.other_kernel = true;
  const Interval hidden = changed_time(p, decode, linear, f32);
  for (KernelPace& k : p.machine.kernels)
    if (k.formats == f32.formats) k.exposed = 0.5;
  const Interval exposed = changed_time(p, decode, linear, f32);
  // Reading takes 2.2 ms, the f32 kernel 3.4: all of the first is hidden behind the second, or half of it.
  // The row takes a quarter more than is known of it, which may grow with the rest.
  const double us = 0.5 * linear.verdict.far_us;
  EXPECT_NEAR(exposed.low - hidden.low, us, 1e-6 * us);
  EXPECT_NEAR(exposed.high - hidden.high, 1.25 * us, 0.01 * us);
}

TEST(RowChange, what_is_unexplained_of_a_row_that_mostly_is_is_not_scaled) {
  const Profile p = example_profile(true);
  const ProfilePhase& decode = p.phases[1];
  const ProfileRow& linear = decode.rows[0];
  const auto gain_of_half = [&](double time_us) {
    ProfileRow r = linear;
    r.time_us = r.occasion.measured_us = time_us;
    r.verdict = judge(r.cost, p.machine.at(2), r.occasion);
    RowChange half = unchanged(p, r);
    for (const DataClass c : {DataClass::kWeights, DataClass::kScales}) half.cost.read_bytes[at(c)] /= 2;
    return time_us - changed_time(p, decode, r, half).low;
  };
  // Of a row that takes ten times as long as anything explains, half the bytes save what they save, and not
  // half.
  EXPECT_GT(gain_of_half(linear.time_us), 0);
  EXPECT_LT(gain_of_half(10 * linear.time_us), 0.1 * 10 * linear.time_us);
}

TEST(RowChange, reading_in_pieces_takes_less_as_there_is_less_to_read) {
  const Profile p = example_profile(true);
  const ProfilePhase& decode = p.phases[1];
  ProfileRow linear = decode.rows[0];
  // All that the row takes is reading, in pieces that give less than the level does.
  linear.occasion.piece_us = linear.time_us;
  linear.verdict = judge(linear.cost, p.machine.at(2), linear.occasion);
  RowChange half = unchanged(p, linear);
  for (const DataClass c : {DataClass::kWeights, DataClass::kScales}) half.cost.read_bytes[at(c)] /= 2;
  const Interval t = changed_time(p, decode, linear, half);
  EXPECT_LT(t.low, 0.5 * linear.time_us);
  EXPECT_NEAR(t.high, 0.5 * linear.time_us, 0.05 * linear.time_us);
}

TEST(Predict, a_gain_below_half_a_percent_is_not_sure) {
  // Fused, the add saves at least reading its value again, and at most its whole time.
  const auto fused = [](int64_t columns) {
    Profile p = example_profile();
    ProfilePhase& decode = p.phases[1];
    Cost moved;
    moved.read_bytes[at(DataClass::kActivations)] = moved.written_bytes[at(DataClass::kActivations)] =
        4 * columns * 8;
    for (const char* op : {"rms_norm", "add"})
      decode.rows.insert(decode.rows.begin(),
                         example_row(p.machine, 2, op, text("1x", columns), "", 8, moved, 10000, 0));
    decode.wall_us += 20000;
    return predict(p, {"fuse-add_rms_norm", "off", "on"}, kFused);
  };
  const LeverJudgement small = fused(1 << 21), large = fused(5 << 19);
  EXPECT_GT(small.gain.low, 0.0);
  EXPECT_LT(small.gain.low, kSureGain);
  EXPECT_GT(small.gain.high, kWorthwhileGain);
  EXPECT_TRUE(small.declined);
  EXPECT_EQ(small.reason.rfind("not surely a gain", 0), 0u) << small.reason;
  EXPECT_EQ(purpose_of(small), Purpose::kOpen);
  EXPECT_GT(large.gain.low, kSureGain);
  EXPECT_LT(large.gain.low, kWorthwhileGain);
  EXPECT_FALSE(large.declined) << large.reason;
  EXPECT_EQ(purpose_of(large), Purpose::kGain);
}

TEST(RowChange, shapes_and_formats_are_read) {
  EXPECT_EQ(shape_dims("512x1536x576"), (std::vector<int64_t>{512, 1536, 576}));
  EXPECT_EQ(shape_dims("schedule"), std::vector<int64_t>{});
  EXPECT_TRUE(is_quantized_format("i8 q4_1"));
  EXPECT_FALSE(is_quantized_format("i8 f16"));
  EXPECT_EQ(without_format("i8 q4_1 f32", "i8"), "q4_1 f32");
  EXPECT_EQ(with_format("f16 f16", "f16", "i8"), "i8 i8");
  EXPECT_EQ(with_format("bf16 f32", "f16", "i8"), "bf16 f32");
}

}  // namespace
}  // namespace ridge
