// K28: a kernel that cannot wait is not launched before what it reads is complete.
// expect: no instance of function template .*launch_dependent
#include "device/launch.cuh"
#ifdef MISUSE
__global__ void copy(float* y, const float* x) {
  *y = *x;
}
ridge::Status start(cudaStream_t stream, float* y, const float* x) {
  return ridge::device::launch_dependent(stream, {}, "copy", copy, y, x);
}
#else
__global__ void copy(ridge::device::Upstream upstream, float* y, ridge::device::Fresh<const float> x) {
  const auto waited = upstream.wait();
  *y = *x.after(waited);
}
ridge::Status start(cudaStream_t stream, float* y, const float* x) {
  return ridge::device::launch_dependent(stream, {}, "copy", copy, y, x);
}
#endif
