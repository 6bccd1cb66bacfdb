#pragma once
// linear_elements: any shape, stride and plain type, an element at a time: what the other kernels decline. A
// warp an output, lanes along `in`.

#include "device/reduce.cuh"
#include "kernels/linear_call.cuh"

namespace ridge::cuda {

template <class W, class X, class Y>
__global__ __launch_bounds__(256) void linear_elements(device::Upstream upstream, LinearCall<W, X, Y> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int lane = threadIdx.x & 31;
  const int64_t outputs = call.tokens * call.out, step = int64_t{gridDim.x} * 8;
  for (int64_t i = int64_t{blockIdx.x} * 8 + (threadIdx.x >> 5); i < outputs; i += step) {
    const int64_t token = i / call.out, row = i % call.out;
    const X* const x = call.x.after(waited) + token * call.x_stride;
    const W* const w = call.w + row * call.w_stride;
    float sum = 0;
    for (int64_t k = lane; k < call.in; k += 32)
      sum = fmaf(device::to_float(w[k]), device::to_float(x[k]), sum);
    sum = device::warp_reduce<device::Sum>(sum);
    if (lane == 0) store_output(call, waited, token, row, sum);
  }
}

template <class W, class X, class Y>
Status launch_linear_elements(cudaStream_t stream, const LinearCall<W, X, Y>& call, int multiprocessors) {
  device::LaunchShape shape;
  const int64_t blocks = (call.tokens * call.out + 7) / 8;
  shape.grid.x = static_cast<unsigned>(min(blocks, int64_t{multiprocessors} * 32));
  shape.block.x = 256;
  return device::launch_dependent(stream, shape, "linear_elements", linear_elements<W, X, Y>, call);
}

}  // namespace ridge::cuda
