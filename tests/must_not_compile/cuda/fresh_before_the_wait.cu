// K28: what the launch before writes is no pointer before the kernel waited.
// expect: inaccessible
#include "device/launch.cuh"
__global__ void copy(ridge::device::Upstream upstream, float* y, ridge::device::Fresh<const float> x) {
#ifdef MISUSE
  *y = *x.after(ridge::device::Waited());
#else
  *y = *x.after(upstream.wait());
#endif
}
