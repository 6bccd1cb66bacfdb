// gpu_cases [small] [ID ...]: cases of single operators on the device, by the ids of their sources; small:
// those that a sanitizer can watch. A line a case; exits with 1 when one fails.

#include <cstdio>
#include <cstring>

#include "cases/device_case.h"

int main(int argc, char** argv) {
  using namespace ridge;
  auto device = CudaDevice::create();
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return 2;
  }
  std::printf("%s\n", (*device)->describe().c_str());
  cases::Bench bench(**device);
  const bool small = argc > 1 && std::strcmp(argv[1], "small") == 0;
  const int first_id = small ? 2 : 1;
  int failed = 0, ran = 0;
  for (const auto& list :
       {cases::linear_cases(), cases::cublaslt_cases(), cases::attention_cases(), cases::prefill_cases(),
        cases::row_cases(), cases::sample_cases(), cases::chain_cases(), cases::thread_cases(),
        cases::bench_cases(), cases::checked_cases()})
    for (const cases::DeviceCase& one : list) {
      bool wanted = argc <= first_id;
      for (int i = first_id; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], one.id) == 0;
      if (!wanted || (small && one.size != cases::kSmall)) continue;
      bench.begin();
      one.run(bench);
      ++ran, failed += bench.failures() > 0;
      if (bench.failures() > 0)
        std::printf("FAIL %s: %d checks, first: %s\n", one.id, bench.failures(),
                    bench.first_failure().c_str());
      else
        std::printf("ok   %s\n", one.id);
      std::fflush(stdout);
    }
  std::printf("%d cases, %d failed\n", ran, failed);
  return failed == 0 && ran > 0 ? 0 : 1;
}
