// Which fused operators a plan takes where several could be: on a device that has kernels for all of them and
// computes nothing.

#include <gtest/gtest.h>

#include "engine/null_device.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/linear_add/linear_add.h"
#include "ops/linear_qkv/linear_qkv.h"
#include "ops/linear_swiglu/linear_swiglu.h"
#include "ops/norm_linear/norm_linear.h"
#include "ops/norm_linear_qkv/norm_linear_qkv.h"
#include "ops/norm_linear_swiglu/norm_linear_swiglu.h"
#include "plan/step_plan.h"

namespace ridge {
namespace {

class FusionOrder : public testing::Test {
 protected:
  static constexpr int64_t kWidth = 64;
  static void SetUpTestSuite() {
    give_kernels<LinearArgs, AddArgs, RmsNormArgs, SiluMulArgs, AddRmsNormArgs, LinearAddArgs, LinearQkvArgs,
                 LinearSwigluArgs, NormLinearArgs, NormLinearQkvArgs, NormLinearSwigluArgs>("joining");
  }

  /// What is left of x + o(y), its norm, and what reads that: `readers` linears, and for two of them
  /// silu_mul.
  std::vector<std::string> names(int readers, const std::set<std::string>& without = {}) {
    NullDevice device("joining");
    StepPlan p(device);
    const Tensor x = p.input("x", kF32, {1, kWidth}), y = p.input("y", kF32, {1, kWidth});
    const auto row = [&] { return p.activation(kF32, {1, kWidth}); };
    const auto linear = [&](const Tensor& to, const Tensor& from) {
      LinearArgs a;
      a.y = to, a.x = from, a.w = Tensor(weights_, kQ4_1, {kWidth, kWidth});
      p.call("linear", a);
    };
    const Tensor o = row(), sum = p.output("sum", kF32, {1, kWidth}), n = row();
    linear(o, y);
    p.call("add", AddArgs{sum, x, o});
    p.call("norm", RmsNormArgs{n, sum, Tensor(norm_, {kWidth})});
    std::vector<Tensor> products;
    for (int i = 0; i < readers; ++i)
      products.push_back(readers == 2 ? row() : p.output(text("product ", i), kF32, {1, kWidth}));
    for (const Tensor& t : products) linear(t, n);
    if (readers == 2)
      p.call("silu", SiluMulArgs{p.output("gated", kF32, {1, kWidth}), products[0], products[1]});
    std::set<std::string> fusions;
    for (const AnyOperator* op : operators())
      if (!op->replaces().empty() && without.count(op->name()) == 0) fusions.insert(op->name());
    const Status finished = p.finish({fusions});
    EXPECT_TRUE(finished.ok()) << finished.message();
    std::vector<std::string> found;
    for (const PlannedCall& c : p.calls()) found.emplace_back(c.call.op->name());
    return found;
  }

 private:
  alignas(64) uint8_t weights_[kWidth * kWidth] = {};
  float norm_[kWidth] = {};
};

using Names = std::vector<std::string>;

TEST_F(FusionOrder, of_two_sequences_that_share_a_call_the_earlier_one_takes_it) {
  EXPECT_EQ(names(1), (Names{"linear_add", "norm_linear"}));
  EXPECT_EQ(names(1, {"linear_add"}), (Names{"linear", "add_rms_norm", "linear"}));
}

TEST_F(FusionOrder, a_fused_call_is_a_part_of_a_longer_sequence) {
  EXPECT_EQ(names(3), (Names{"linear_add", "norm_linear_qkv"}));
  EXPECT_EQ(names(2), (Names{"linear_add", "norm_linear_swiglu"}));
  EXPECT_EQ(names(2, {"norm_linear_swiglu"}), (Names{"linear_add", "rms_norm", "linear_swiglu"}));
  EXPECT_EQ(names(2, {"linear_swiglu"}), (Names{"linear_add", "rms_norm", "linear", "linear", "silu_mul"}));
}

TEST(LinearGated, plain_weights_of_one_token_are_fused_only_where_that_gains) {
  const auto fused = [](int64_t tokens, DType dtype, const Shape& w) {
    alignas(64) static float memory[64];
    LinearArgs gate, up;
    gate.x = up.x = Tensor(memory, kF32, {tokens, w[1]});
    gate.w = up.w = Tensor(memory, dtype, w);
    gate.y = Tensor(memory + 16, kF32, {tokens, w[0]}), up.y = Tensor(memory + 32, kF32, {tokens, w[0]});
    SiluMulArgs join{Tensor(memory + 48, kF32, {tokens, w[0]}), gate.y, up.y};
    const AnyCall calls[] = {{&registered<LinearArgs>(), std::make_shared<LinearArgs>(gate), "gate"},
                             {&registered<LinearArgs>(), std::make_shared<LinearArgs>(up), "up"},
                             {&registered<SiluMulArgs>(), std::make_shared<SiluMulArgs>(join), "silu"}};
    return registered<LinearSwigluArgs>().fuse({&calls[0], &calls[1], &calls[2]}).args != nullptr;
  };
  EXPECT_FALSE(fused(1, kBF16, {3072, 1024})) << "Qwen3-0.6B";
  EXPECT_TRUE(fused(2, kBF16, {3072, 1024}));
  EXPECT_TRUE(fused(1, kQ4_1, {3072, 1024}));
  EXPECT_TRUE(fused(1, kBF16, {14336, 4096})) << "Llama-3-8B";
}

}  // namespace
}  // namespace ridge
