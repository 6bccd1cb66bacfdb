#include "plan/step_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ops/add/add.h"
#include "ops/rms_norm/rms_norm.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {
namespace {

struct TwoCalls {
  std::unique_ptr<CpuDevice> device = CpuDevice::create({.threads = 1}).take();
  float weight[4] = {1, 2, 3, 4};
  /// y = rms_norm(a + b); with `reader`, the sum is read once more.
  StepPlan plan(const std::set<std::string>& fusions, bool reader = false) {
    StepPlan p(*device);
    const Tensor a = p.input("a", kF32, {2, 4}), b = p.input("b", kF32, {2, 4}),
                 y = p.output("y", kF32, {2, 4});
    const Tensor sum = p.activation(kF32, {2, 4});
    p.call("add", AddArgs{sum, a, b});
    p.call("norm", RmsNormArgs{y, sum, Tensor(weight, {4})});
    if (reader) p.call("again", AddArgs{p.output("z", kF32, {2, 4}), sum, a});
    EXPECT_TRUE(p.finish({fusions}).ok());
    for (int i = 0; i < 8; ++i)
      p.find("a").as<float>()[i] = float(i), p.find("b").as<float>()[i] = float(2 * i - 5);
    return p;
  }
};

TEST(StepPlan, fused_and_unfused_give_the_same_bits_and_fusion_removes_a_call) {
  TwoCalls t;
  StepPlan plain = t.plan({}), fused = t.plan({"add_rms_norm"});
  ASSERT_EQ(plain.calls().size(), 2u);
  ASSERT_EQ(fused.calls().size(), 1u);
  EXPECT_STREQ(fused.calls()[0].call.op->name(), "add_rms_norm");
  const auto stream = t.device->create_stream().take();
  ASSERT_TRUE(plain.run(*stream).ok());
  ASSERT_TRUE(fused.run(*stream).ok());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(plain.find("y").as<float>()[i], fused.find("y").as<float>()[i]);
  EXPECT_NE(plain.find("y").as<float>()[3], 0);
}

TEST(StepPlan, a_sum_that_another_call_reads_survives_fusion) {
  TwoCalls t;
  StepPlan fused = t.plan({"add_rms_norm"}, true);
  ASSERT_EQ(fused.calls().size(), 2u);
  const auto stream = t.device->create_stream().take();
  ASSERT_TRUE(fused.run(*stream).ok());
  EXPECT_EQ(fused.find("z").as<float>()[3], 3 + (2 * 3 - 5) + 3);
}

TEST(StepPlan, memory_is_reused_when_lifetimes_end) {
  const auto device = CpuDevice::create({.threads = 1}).take();
  StepPlan p(*device);
  const Tensor in = p.input("in", kF32, {256, 64});
  Tensor last = in;
  for (int i = 0; i < 10; ++i) {
    const Tensor next = p.activation(kF32, {256, 64});
    p.call("step", AddArgs{next, last, in});
    last = next;
  }
  ASSERT_TRUE(p.finish({}).ok());
  EXPECT_LE(p.activation_bytes(), 3 * 256 * 64 * 4);
  for (int i = 0; i < 256 * 64; ++i) p.find("in").as<float>()[i] = 1;
  const auto stream = device->create_stream().take();
  ASSERT_TRUE(p.run(*stream).ok());
  const auto& call = p.calls().back().call;
  EXPECT_EQ(call.as<AddArgs>().y.f64(255, 63), 11);
}

TEST(StepPlan, on_the_host_large_activations_share_memory_with_those_of_their_size_alone) {
  const auto device = CpuDevice::create({.threads = 1}).take();
  StepPlan p(*device);
  // Two chains whose tensors live as long as each other's do, of 64 and 128 KiB; lifetimes alone would mix
  // them.
  Tensor narrow = p.input("narrow", kF32, {256, 64}), wide = p.input("wide", kF32, {256, 128});
  for (int i = 0; i < 9; ++i) {
    Tensor& x = i % 3 == 0 ? wide : narrow;
    const Tensor next = p.activation(kF32, x.shape);
    p.call("step", AddArgs{next, x, x});
    x = next;
  }
  ASSERT_TRUE(p.finish({}).ok());
  std::map<int64_t, std::vector<const std::byte*>> places;  // by bytes
  for (const PlannedCall& c : p.calls()) {
    const Tensor& y = c.call.as<AddArgs>().y;
    places[y.bytes()].push_back(static_cast<const std::byte*>(y.data));
  }
  ASSERT_EQ(places.size(), 2u);
  for (const std::byte* a : places[256 * 64 * 4])
    for (const std::byte* b : places[256 * 128 * 4])
      EXPECT_TRUE(a + 256 * 64 * 4 <= b || b + 256 * 128 * 4 <= a);
  // Of one size they do share it, and from the same first byte on.
  for (auto& [bytes, at] : places) {
    const std::set<const std::byte*> apart(at.begin(), at.end());
    EXPECT_LT(apart.size(), at.size());
    for (const std::byte* one : apart)
      for (const std::byte* other : apart) EXPECT_EQ((one - other) % bytes, 0);
  }
}

TEST(StepPlan, a_bad_call_is_named_by_its_label_before_anything_runs) {
  const auto device = CpuDevice::create({.threads = 1}).take();
  StepPlan p(*device);
  p.call("layer 3 residual",
         AddArgs{p.activation(kF32, {2, 4}), p.activation(kF32, {2, 4}), p.activation(kF32, {2, 5})});
  const Status s = p.finish({});
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_NE(s.message().find("layer 3 residual: add: operand b has shape [2, 5]"), std::string::npos)
      << s.message();
}

}  // namespace
}  // namespace ridge
