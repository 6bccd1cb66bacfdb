#include <algorithm>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/stamps.h"

namespace ridge {

Status note_launch(const void* kernel, const char* name, int64_t blocks, int64_t threads,
                   int64_t dynamic_shared_bytes) {
  cudaFuncAttributes attributes = {};
  RIDGE_TRY(cuda_status(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes").within(name));
  int fitting = 0, device = 0, multiprocessors = 1, most_threads = 1;
  RIDGE_TRY(
      cuda_status(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fitting, kernel, static_cast<int>(threads),
                                                                static_cast<size_t>(dynamic_shared_bytes)),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor"));
  RIDGE_TRY(cuda_status(cudaGetDevice(&device), "cudaGetDevice"));
  for (const auto& [value, attribute] : {std::pair{&multiprocessors, cudaDevAttrMultiProcessorCount},
                                         std::pair{&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor}})
    RIDGE_TRY(cuda_status(cudaDeviceGetAttribute(value, attribute, device), "cudaDeviceGetAttribute"));
  KernelLaunch launch;
  launch.kernel = name, launch.blocks = blocks, launch.threads = threads;
  launch.registers = attributes.numRegs;
  launch.static_shared_bytes = static_cast<int64_t>(attributes.sharedSizeBytes);
  launch.dynamic_shared_bytes = dynamic_shared_bytes;
  launch.local_bytes = static_cast<int64_t>(attributes.localSizeBytes);
  launch.blocks_fitting = fitting;
  const int64_t there = (blocks + multiprocessors - 1) / multiprocessors;
  launch.occupancy = static_cast<double>(std::min<int64_t>(fitting, there) * ((threads + 31) / 32)) /
                     (static_cast<double>(most_threads) / 32);
  g_launch_notes->push_back(std::move(launch));
  return {};
}

void CudaStream::note_launches(std::vector<KernelLaunch>* launches) {
  g_launch_notes = launches;
}

}  // namespace ridge
