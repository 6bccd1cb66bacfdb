// Limit: bandwidth; below about 100 tokens the launch. A thread a pair. The angle is a product of a 24-bit
// and an up to 53-bit number, so double holds it and reduces it as exactly as the description asks at any
// position.

#include <algorithm>

#include "device/convert.cuh"
#include "device/launch.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/rope/rope.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

template <class T, class P>
struct RopeCall {
  device::Fresh<T> x;                  // [tokens, heads, head_dim] through the strides
  device::Fresh<const P> positions;    // [tokens]
  const float* frequencies = nullptr;  // [pairs]
  int64_t tokens = 0, heads = 0, pairs = 0, token_stride = 0, head_stride = 0, position_stride = 0,
          frequency_stride = 0;
  bool interleaved = false;
  float magnitude = 1;
};

template <class T, class P>
__global__ __launch_bounds__(128) void rope_pairs(device::Upstream upstream, RopeCall<T, P> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t all = call.tokens * call.pairs, step = int64_t{gridDim.x} * 128;
  for (int64_t i = int64_t{blockIdx.x} * 128 + threadIdx.x; i < all; i += step) {
    const int64_t token = i / call.pairs, pair = i % call.pairs;
    const double angle = static_cast<double>(call.positions.after(waited)[token * call.position_stride]) *
                         static_cast<double>(call.frequencies[pair * call.frequency_stride]);
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    const float s = static_cast<float>(sine * call.magnitude),
                c = static_cast<float>(cosine * call.magnitude);
    const int64_t first = call.interleaved ? 2 * pair : pair,
                  second = call.interleaved ? first + 1 : call.pairs + pair;
    T* row = call.x.after(waited) + token * call.token_stride;
    for (int64_t h = blockIdx.y; h < call.heads; h += gridDim.y) {
      T* const head = row + h * call.head_stride;
      const float a = device::to_float(head[first]), b = device::to_float(head[second]);
      head[first] = device::from_float<T>(a * c - b * s);
      head[second] = device::from_float<T>(b * c + a * s);
    }
  }
}

Decline declines(const RopeArgs& a) {
  return dense_rows({{"x", &a.x}});
}

Status run(Stream& stream, const RopeArgs& a) {
  if (a.x.elements() == 0 || a.frequencies.dim(0) == 0) return {};
  return with_dtype<float, bf16>(a.x, [&]<class T>(T) {
    return with_dtype<int32_t, int64_t>(a.positions, [&]<class P>(P) {
      RopeCall<T, P> call;
      call.x = a.x.as<T>(), call.positions = a.positions.as<const P>(),
      call.frequencies = a.frequencies.as<float>();
      call.tokens = a.x.dim(0), call.heads = a.x.dim(1), call.pairs = a.frequencies.dim(0);
      call.token_stride = a.x.stride(0), call.head_stride = a.x.stride(1),
      call.position_stride = a.positions.stride(0);
      call.frequency_stride = a.frequencies.stride(0), call.interleaved = a.interleaved,
      call.magnitude = a.magnitude;
      device::LaunchShape shape;
      shape.block.x = 128;
      shape.grid.x = static_cast<unsigned>(std::min((call.tokens * call.pairs + 127) / 128, int64_t{4096}));
      shape.grid.y = static_cast<unsigned>(std::min(call.heads, int64_t{16}));
      return device::launch_dependent(as_cuda(stream).native(), shape, "rope_pairs", rope_pairs<T, P>, call);
    });
  });
}

}  // namespace

void rope_cuda(Kernels<RopeArgs>& kernels) {
  kernels.add("rope_pairs", declines, run);
}

}  // namespace ridge::cuda
