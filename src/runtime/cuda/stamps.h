#pragma once
// How an operator's time is taken inside a step without anything between its calls: the first block of a
// kernel that has waited for what came before writes the device's clock (device/launch.cuh). That is the end
// of the call before it, so that times are differences of neighbours and sum to the step.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "runtime/device.h"

namespace ridge {

/// Where the next launch of this thread writes its stamp, or null; each launch takes it away, so that a call
/// of several launches stamps its first.
inline thread_local uint64_t* g_next_stamp = nullptr;

/// Where launches of this thread are noted, or null.
inline thread_local std::vector<KernelLaunch>* g_launch_notes = nullptr;
/// Adds one to g_launch_notes, of what the driver reports of the kernel.
Status note_launch(const void* kernel, const char* name, int64_t blocks, int64_t threads,
                   int64_t dynamic_shared_bytes);

/// A launch that stamps and does nothing else. Defined in device/stamp_cuda.cu, where kernels may be.
Status launch_stamp(cudaStream_t stream);

}  // namespace ridge
