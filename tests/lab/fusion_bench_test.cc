#include "lab/fusion_bench.h"

#include <gtest/gtest.h>

#include "account/flat_machine.h"
#include "engine/generate.h"
#include "integration/model_file.h"

namespace ridge {
namespace {

Result<FusionBench> bench(const std::set<std::string>& fusions) {
  ModelFile file;
  file.write(TinySpec());
  SessionOptions options = one_thread();
  options.engine.plan.fusions = fusions;
  auto session = Session::open(file.path(), options);
  if (!session.ok()) return session.status();
  WorkloadOptions w;
  w.prompt_tokens = 5, w.output_tokens = 6;
  return bench_fusion(**session, (*session)->engine().options(), flat_machine(10e9, 100e9), w, 2, nullptr);
}

double calls(const std::vector<StepPart>& parts, const std::string& op) {
  double sum = 0;
  for (const StepPart& p : parts)
    if (p.op == op) sum += p.calls;
  return sum;
}

TEST(FusionBench, each_operator_is_left_apart_alone_and_all_together) {
  const auto made = bench({"add_rms_norm"});
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made->variants.size(), 3u);
  const FusionVariant &all = made->variants[0], &one = made->variants[1], &none = made->variants[2];
  EXPECT_EQ(all.without, "");
  EXPECT_EQ(one.without, "add_rms_norm");
  EXPECT_EQ(none.without, "all");
  const double fused = calls(all.parts, "add_rms_norm");
  EXPECT_GT(fused, 0);
  EXPECT_EQ(calls(one.parts, "add_rms_norm"), 0);
  EXPECT_EQ(calls(parts_beyond(all, one), "add_rms_norm"), fused);
  EXPECT_EQ(calls(parts_beyond(one, all), "add"), fused);
  EXPECT_EQ(calls(parts_beyond(one, all), "rms_norm"), fused);
  EXPECT_DOUBLE_EQ(one.launches, all.launches + fused);
  EXPECT_DOUBLE_EQ(none.launches, one.launches);
  EXPECT_GT(one.bytes, all.bytes);
  for (const FusionVariant& v : made->variants) {
    EXPECT_GT(v.us, 0);
    EXPECT_LE(v.us_least, v.us);
    EXPECT_GE(v.us_most, v.us);
  }
  for (const char* part : {"all but add_rms_norm", "all together", "none"})
    EXPECT_NE(fusion_text(*made).find(part), std::string::npos) << fusion_text(*made);
  for (const char* part : {"\"without\": \"add_rms_norm\"", "\"with_it\"", "\"without_it\"", "\"step_us\""})
    EXPECT_NE(fusion_json(*made, "ridge bench fusion").find(part), std::string::npos) << part;
}

TEST(FusionBench, a_step_without_fused_operators_is_declined) {
  const auto made = bench({});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kDeclined) << made.status().message();
}

}  // namespace
}  // namespace ridge
