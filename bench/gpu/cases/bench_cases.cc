// What `ridge bench --op all --device cuda` times: every operator that has a CUDA kernel at all.

#include <algorithm>

#include "base/text.h"
#include "cases/device_case.h"
#include "ops/any_operator.h"

namespace ridge::cases {

namespace {

void every_bench_shape_has_a_kernel(Bench& bench) {
  const Target& target = bench.device().target();
  for (AnyOperator* op : operators()) {
    const auto kernels = op->kernels();
    if (std::none_of(kernels.begin(), kernels.end(), [](const KernelInfo& k) { return k.backend == "cuda"; }))
      continue;
    bench.expect(!op->bench_cases().empty(), text(op->name(), " has no shape to time"));
    for (const auto& shape : op->bench_cases()) {
      std::vector<Buffer> storage;
      const auto call = op->example(target, shape, {}, 1, &storage);
      bench.must(call.status());
      if (call.ok()) bench.must(op->select(target, (*call).args.get()).status());
    }
  }
}

}  // namespace

std::vector<DeviceCase> bench_cases() {
  return {{"every_bench_shape_has_a_kernel", every_bench_shape_has_a_kernel, kLarge}};
}

}  // namespace ridge::cases
