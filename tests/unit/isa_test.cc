// An instruction set that a build leaves out is refused, not replaced by a narrower one. The source is
// compiled twice more here, under other names: as a build with RIDGE_KERNEL_ISAS=scalar compiles it, and as
// one that has no kernels for this processor.

#include <gtest/gtest.h>

#include "ops/any_operator.h"
#include "runtime/cpu/cpu_device.h"

#define isa_name isa_name_of_small_build
#define parse_isa parse_isa_of_small_build
#define check_isa check_isa_of_small_build
#define native_isa native_isa_of_small_build
#define processor_isa processor_isa_of_small_build
#define RIDGE_KERNEL_ISAS "scalar"
namespace ridge {
const char* isa_name(Isa isa);
Result<Isa> parse_isa(std::string_view name);
Status check_isa(Isa isa);
Isa native_isa();
}  // namespace ridge
#include "runtime/isa.cc"
#undef isa_name
#undef parse_isa
#undef check_isa
#undef native_isa
#undef processor_isa
#undef RIDGE_KERNEL_ISAS

#define isa_name isa_name_of_foreign_build
#define parse_isa parse_isa_of_foreign_build
#define check_isa check_isa_of_foreign_build
#define native_isa native_isa_of_foreign_build
#define processor_isa processor_isa_of_foreign_build
#define RIDGE_KERNEL_ISAS "neon"
namespace ridge {
const char* isa_name(Isa isa);
Result<Isa> parse_isa(std::string_view name);
Status check_isa(Isa isa);
Isa native_isa();
}  // namespace ridge
#include "runtime/isa.cc"
#undef isa_name
#undef parse_isa
#undef check_isa
#undef native_isa
#undef processor_isa
#undef RIDGE_KERNEL_ISAS

namespace ridge {
namespace {

TEST(InstructionSet, one_left_out_of_the_build_is_refused_naming_it_what_is_there_and_the_remedy) {
  if (native_isa() < Isa::avx2) GTEST_SKIP() << "this processor has scalar alone";
  const auto parsed = parse_isa_of_small_build("avx2");
  ASSERT_FALSE(parsed.ok()) << "a narrower set would have stood in for it in silence";
  EXPECT_EQ(parsed.status().code(), Code::kDeclined);
  EXPECT_EQ(parsed.status().message(),
            "instruction set avx2: this build has kernels for scalar alone: configure it with "
            "-DRIDGE_KERNEL_ISAS=\"scalar;avx2;avx512\"");
  const auto scalar = parse_isa_of_small_build("scalar");
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ(*scalar, Isa::scalar);
  EXPECT_EQ(native_isa_of_small_build(), Isa::scalar)
      << "a device would call itself what it has no kernels of";
}

TEST(InstructionSet, a_build_without_any_of_this_processor_says_so) {
  EXPECT_EQ(native_isa_of_foreign_build(), Isa::scalar);
  const Status no = check_isa_of_foreign_build(native_isa_of_foreign_build());
  EXPECT_EQ(no.code(), Code::kDeclined);
  EXPECT_EQ(no.message(),
            "instruction set scalar: this build has kernels for neon alone: configure it with "
            "-DRIDGE_KERNEL_ISAS=\"scalar;avx2;avx512\"");
}

// What lists them was compiled for the set too: on a processor without it that alone is an illegal
// instruction.
TEST(InstructionSet, kernels_are_listed_of_those_alone_that_this_processor_has) {
  for (AnyOperator* op : operators())
    for (const KernelInfo& k : op->kernels())
      EXPECT_TRUE(k.isa == Isa::none || check_isa(k.isa).ok()) << op->name() << ", " << k.name;
}

TEST(InstructionSet, a_device_is_not_made_with_one_that_is_not_here) {
  CpuOptions options;
  options.threads = 1;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    options.isa = isa;
    const auto device = CpuDevice::create(options);
    EXPECT_EQ(device.ok(), check_isa(isa).ok()) << isa_name(isa);
    if (device.ok()) {
      EXPECT_EQ((*device)->target().isa, isa);
    } else {
      EXPECT_EQ(device.status().message(), check_isa(isa).message());
    }
  }
}

TEST(InstructionSet, one_that_the_processor_lacks_or_nobody_knows_is_refused_by_name) {
  const auto unknown = parse_isa("neon");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("neon"), std::string::npos) << unknown.status().message();
  EXPECT_NE(unknown.status().message().find("use scalar, avx2 or avx512"), std::string::npos);
  if (native_isa() == Isa::avx512) return;
  const auto lacking = parse_isa("avx512");
  ASSERT_FALSE(lacking.ok());
  EXPECT_NE(lacking.status().message().find(text("this processor has ", isa_name(native_isa()))),
            std::string::npos)
      << lacking.status().message();
}

}  // namespace
}  // namespace ridge
