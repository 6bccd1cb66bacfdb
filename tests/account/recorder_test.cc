// A library user's account: what a stream with a recorder tells of each typed call.

#include "account/recorder.h"

#include <gtest/gtest.h>

#include "ops/rms_norm/rms_norm.h"
#include "ops/silu_mul/silu_mul.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {
namespace {

struct Kept : Recorder {
  std::vector<CallRecord> calls;
  void record(CallRecord call) override { calls.push_back(std::move(call)); }
};

TEST(Recorder, sees_every_typed_call_in_order_with_its_cost_and_time_and_nothing_when_detached) {
  CpuOptions one_thread;
  one_thread.threads = 1;
  const auto device = CpuDevice::create(one_thread).take();
  const auto stream = device->create_stream().take();
  std::vector<float> x(3 * 64, 1), w(64, 2), y(3 * 64);
  RmsNormArgs norm;
  norm.x = Tensor(x.data(), {3, 64}), norm.w = Tensor(w.data(), {64}), norm.y = Tensor(y.data(), {3, 64});
  SiluMulArgs gated;
  gated.gate = norm.x, gated.up = norm.y, gated.y = norm.y;

  Kept kept;
  ASSERT_TRUE(rms_norm(*stream, norm).ok());
  stream->set_recorder(&kept);
  const int64_t before = now_ns();
  ASSERT_TRUE(rms_norm(*stream, norm).ok());
  ASSERT_TRUE(silu_mul(*stream, gated).ok());
  norm.w = Tensor(w.data(), {63});
  EXPECT_FALSE(rms_norm(*stream, norm).ok());  // refused before it ran: no record
  stream->set_recorder(nullptr);
  ASSERT_TRUE(silu_mul(*stream, gated).ok());

  ASSERT_EQ(kept.calls.size(), 2u);
  const CallRecord &first = kept.calls[0], &second = kept.calls[1];
  EXPECT_STREQ(first.op, "rms_norm");
  EXPECT_STREQ(second.op, "silu_mul");
  EXPECT_EQ(first.shape, "3x64");
  EXPECT_EQ(first.cost.read_bytes[size_t(DataClass::kActivations)], 3 * 64 * 4);
  EXPECT_EQ(first.cost.read_bytes[size_t(DataClass::kWeights)], 64 * 4);
  EXPECT_EQ(first.cost.written_bytes[size_t(DataClass::kActivations)], 3 * 64 * 4);
  EXPECT_EQ(second.cost.total_flops(), 5 * 3 * 64);
  EXPECT_NE(std::string(first.kernel), "");
  EXPECT_LE(before, first.begin_ns);
  EXPECT_LE(first.begin_ns, first.end_ns);
  EXPECT_LE(first.end_ns, second.begin_ns);
}

}  // namespace
}  // namespace ridge
