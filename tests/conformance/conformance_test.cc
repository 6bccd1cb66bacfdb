// Every operator, every kernel, every instruction set of this processor, against the double-precision
// references.

#include <gtest/gtest.h>

#include <cstdio>

#include "ops/any_operator.h"
#include "ops/conformance.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {
namespace {

class Conforms : public testing::TestWithParam<AnyOperator*> {};

TEST_P(Conforms, to_the_reference_on_every_instruction_set) {
  AnyOperator& op = *GetParam();
  CpuOptions cpu;
  cpu.threads = 3;
  cpu.crossover_bytes = 0;  // small cases meet too
  auto device = CpuDevice::create(cpu);
  ASSERT_TRUE(device.ok()) << device.status().message();
  ConformanceOptions options;
  options.device = device->get();
  const ConformanceReport report = op.conform(options);
  for (const auto& f : report.failures) ADD_FAILURE() << f;
  EXPECT_GT(report.comparisons, 0) << "a conformance that compares nothing proves nothing";
  for (const auto& k : report.kernels) {
    std::printf("  %-32s %-7s %5lld runs %5lld declines, worst error %.3f of its bound\n", k.kernel.c_str(),
                isa_name(k.isa), static_cast<long long>(k.runs), static_cast<long long>(k.declines), k.worst);
    EXPECT_GT(k.runs, 0) << k.kernel << " declined every case: " << text(k.declined);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Conforms, testing::ValuesIn(operators()),
                         [](const auto& op) { return std::string(op.param->name()); });

}  // namespace
}  // namespace ridge
