// Every operator, every kernel, every instruction set of this processor, against the double-precision
// references.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "ops/any_operator.h"
#include "ops/conformance.h"
#include "runtime/cpu/cpu_device.h"
#include "sanitized.h"

namespace ridge {
namespace {

// Sanitizers watch what a kernel touches, which its choices of types and layouts share mostly: every 13th
// will do there (a prime to the number of layouts).
constexpr int64_t kEvery = kSanitized ? 13 : 1;

// For the support matrix (tools/support_matrix.py): a line for each kernel, instruction set and choice of
// dtypes.
void write_support(const char* folder, const char* op, const ConformanceReport& report) {
  FILE* file = std::fopen(text(folder, "/", op, ".tsv").c_str(), "w");
  ASSERT_NE(file, nullptr) << folder << " cannot be written";
  for (const auto& k : report.kernels)
    for (const auto& [dtypes, worst] : k.worst_by_dtype)
      std::fprintf(file, "%s\t%s\t%s\t%s\t%s\t%.3f\n", op, k.kernel.c_str(), k.backend.c_str(),
                   isa_name(k.isa), dtypes.c_str(), worst);
  EXPECT_EQ(std::fclose(file), 0);
}

class Conforms : public testing::TestWithParam<AnyOperator*> {};

TEST_P(Conforms, to_the_reference_on_every_instruction_set) {
  AnyOperator& op = *GetParam();
  const auto kernels = op.kernels();
  if (std::none_of(kernels.begin(), kernels.end(), [](const KernelInfo& k) { return k.backend == "cpu"; }))
    GTEST_SKIP() << op.name() << " has no CPU kernel";
  CpuOptions cpu;
  cpu.threads = 3;
  cpu.crossover_bytes = 0;  // small cases meet too
  auto device = CpuDevice::create(cpu);
  ASSERT_TRUE(device.ok()) << device.status().message();
  ConformanceOptions options;
  options.device = device->get();
  options.every = kEvery;
  const ConformanceReport report = op.conform(options);
  for (const auto& f : report.failures) ADD_FAILURE() << f;
  EXPECT_GT(report.comparisons, 0) << "a conformance that compares nothing proves nothing";
  for (const auto& k : report.kernels) {
    std::printf("  %-32s %-7s %5lld runs %5lld declines, worst error %.3f of its bound\n", k.kernel.c_str(),
                isa_name(k.isa), static_cast<long long>(k.runs), static_cast<long long>(k.declines), k.worst);
    EXPECT_GT(k.runs, 0) << k.kernel << " declined every case: " << text(k.declined);
  }
  if (const char* folder = std::getenv("RIDGE_SUPPORT_FOLDER")) write_support(folder, op.name(), report);
}

INSTANTIATE_TEST_SUITE_P(Operators, Conforms, testing::ValuesIn(operators()),
                         [](const auto& op) { return std::string(op.param->name()); });

}  // namespace
}  // namespace ridge
