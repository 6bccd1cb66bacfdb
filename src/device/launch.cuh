#pragma once
// Dependent launches that cannot be misused. A kernel whose blocks may start while the launch before it still
// runs takes an Upstream first. What that launch writes, or still reads, is passed as Fresh<T>; its pointer
// comes out only for a Waited, and only Upstream::wait() makes one. Weights and what was complete before the
// step are plain pointers.

#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

#include "base/status.h"
#include "device/checks.cuh"
#include "device/ptx.cuh"
#include "runtime/cuda/stamps.h"

namespace ridge::device {

class Waited {
  friend struct Upstream;
  __device__ Waited() {}
};

struct Upstream : Checks {
  unsigned long long* stamp = nullptr;  // runtime/cuda/stamps.h; all ones before the launch
  /// Lets the next launch start its blocks; what they may read before their own wait() does not depend on
  /// this one.
  __device__ void release_next() const { ptx::grid_launch_dependents(); }
  /// Returns once everything launched before has finished.
  __device__ Waited wait() const {
    ptx::grid_dependency_wait();
    if (stamp != nullptr && (blockIdx.x | blockIdx.y | blockIdx.z) == 0 && (threadIdx.x & 31) == 0)
      atomicMin(stamp, ptx::global_timer());
    return {};
  }
};

static_assert(kChecked || sizeof(Upstream) == sizeof(void*), "checks cost nothing where there are none");

template <class T>
class Fresh {
 public:
  Fresh() = default;
  __host__ Fresh(T* p) : p_(p) {}
  __device__ T* after(Waited) const { return p_; }
  /// For the host alone: the address that a tensor map names.
  __host__ T* address() const { return p_; }

 private:
  T* p_ = nullptr;
};

struct LaunchShape {
  dim3 grid = {1, 1, 1};
  dim3 block = {1, 1, 1};
  int shared_bytes = 0;
  int cluster = 1;  // blocks along x
};

/// An error that names the call, or ok.
inline Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return internal_error(call, ": ", cudaGetErrorName(error), ", ", cudaGetErrorString(error));
}

template <class... P>
Status launch_with(cudaLaunchAttribute* attributes, unsigned count, cudaStream_t stream,
                   const LaunchShape& shape, const char* name, void (*kernel)(P...), const P&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = stream;
  config.attrs = attributes;
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
    ++count;
  }
  config.numAttrs = count;
  if (g_launch_notes != nullptr)
    RIDGE_TRY(note_launch(reinterpret_cast<const void*>(kernel), name,
                          int64_t{shape.grid.x} * shape.grid.y * shape.grid.z,
                          int64_t{shape.block.x} * shape.block.y * shape.block.z, shape.shared_bytes));
  return cuda_status(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

// A launcher that keeps a kernel's attribute in a static variable is itself `static`: a kernel template has a
// handle of its own in every file that uses it, and a shared variable would set the attribute of one of them
// alone.

/// Starts when everything before it on the stream has finished.
template <class... P>
Status launch(cudaStream_t stream, const LaunchShape& shape, const char* name, void (*kernel)(P...),
              const std::type_identity_t<P>&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  return launch_with<P...>(attributes, 0, stream, shape, name, kernel, arguments...);
}

/// Starts its blocks when the launch before it releases them. Only kernels that take an Upstream first can be
/// given.
template <class... P>
Status launch_dependent(cudaStream_t stream, const LaunchShape& shape, const char* name,
                        void (*kernel)(Upstream, P...), const std::type_identity_t<P>&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  return launch_with<Upstream, P...>(attributes, 1, stream, shape, name, kernel,
                                     Upstream{checks_of_launch(), reinterpret_cast<unsigned long long*>(
                                                                      std::exchange(g_next_stamp, nullptr))},
                                     arguments...);
}

}  // namespace ridge::device
