// gpu_conformance [slow] [every=N] [OPERATOR ...]: every operator that has a CUDA kernel (or those named), on
// the cases of its description, against its double-precision reference. every=N takes each Nth choice of
// types and layouts, for runs under a sanitizer. Prints a line a kernel; exits with 1 when anything fails or
// nothing ran.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "ops/any_operator.h"
#include "ops/conformance.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cuda_device.h"

int main(int argc, char** argv) {
  using namespace ridge;
  auto device = CudaDevice::create();
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return 2;
  }
  std::printf("%s\n", (*device)->describe().c_str());
  // The cases are small: of any number of tokens here.
  CublasLt cublaslt(std::getenv("RIDGE_CUBLASLT"), 0);
  CublasLt::use(&cublaslt);
  std::printf("%s\n", cublaslt.describe().c_str());
  ConformanceOptions options;
  options.device = device->get();
  std::set<std::string> wanted;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "slow") == 0)
      options.slow = true;
    else if (std::strncmp(argv[i], "every=", 6) == 0)
      options.every = std::max(1LL, std::atoll(argv[i] + 6));
    else
      wanted.insert(argv[i]);
  int64_t failures = 0, runs = 0;
  for (const AnyOperator* op : operators()) {
    bool has_cuda = false;
    for (const KernelInfo& kernel : op->kernels()) has_cuda = has_cuda || kernel.backend == "cuda";
    if (!has_cuda || (!wanted.empty() && wanted.count(op->name()) == 0)) continue;
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
