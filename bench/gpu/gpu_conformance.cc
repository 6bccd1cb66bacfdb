// gpu_conformance [slow]: every operator that has a CUDA kernel, on the cases of its description, against its
// double-precision reference. Prints a line a kernel; exits with 1 when anything fails or nothing ran.

#include <cstdio>
#include <cstring>

#include "ops/any_operator.h"
#include "ops/conformance.h"
#include "runtime/cuda/cuda_device.h"

int main(int argc, char** argv) {
  using namespace ridge;
  auto device = CudaDevice::create();
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return 2;
  }
  std::printf("%s\n", (*device)->describe().c_str());
  ConformanceOptions options;
  options.device = device->get();
  options.slow = argc > 1 && std::strcmp(argv[1], "slow") == 0;
  int64_t failures = 0, runs = 0;
  for (const AnyOperator* op : operators()) {
    bool has_cuda = false;
    for (const KernelInfo& kernel : op->kernels()) has_cuda = has_cuda || kernel.backend == "cuda";
    if (!has_cuda) continue;
    const ConformanceReport report = op->conform(options);
    for (const KernelReport& kernel : report.kernels) {
      std::printf("%-18s %-30s %6lld runs %6lld declined, worst error %.3f of its bound: %s\n", op->name(),
                  kernel.kernel.c_str(), static_cast<long long>(kernel.runs),
                  static_cast<long long>(kernel.declines), kernel.worst, kernel.worst_case.c_str());
      for (const auto& reason : kernel.declined) std::printf("    declines: %s\n", reason.c_str());
      runs += kernel.runs;
    }
    for (const auto& failure : report.failures) std::printf("    FAIL %s\n", failure.c_str());
    failures += static_cast<int64_t>(report.failures.size());
  }
  std::printf("%lld runs, %lld failures\n", static_cast<long long>(runs), static_cast<long long>(failures));
  return failures == 0 && runs > 0 ? 0 : 1;
}
