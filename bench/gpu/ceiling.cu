// R: the rate at which this GPU reads memory that is in no cache, the best of a few plain shapes.

#include <algorithm>

#include "device/ptx.cuh"
#include "harness.h"

namespace ridge::bench {

namespace {

template <int kUnroll>
__global__ __launch_bounds__(512) void read_all(const uint4* data, int64_t vectors, uint32_t* sink) {
  const int64_t step = int64_t{gridDim.x} * 512;
  uint32_t sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * 512 + threadIdx.x; i < vectors; i += step * kUnroll) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      v[u] = i + u * step < vectors ? device::ptx::load_once(data + i + u * step) : uint4{};
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) sum += v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  if (sum == 0x9e3779b9u) *sink = sum;  // so that the loads are not dropped
}

}  // namespace

void run_ceiling(Session& session) {
  constexpr int64_t kBytes = int64_t{8} << 30;
  DeviceBlock data(kBytes), sink(16);
  fill_field(data.as<float>(), kBytes / 4, 1);
  const auto contender = [&](const char* name, auto kernel, int blocks_per_sm) -> Contender {
    return {name, [&, kernel, blocks_per_sm](cudaStream_t stream, int) {
              kernel<<<static_cast<unsigned>(blocks_per_sm * session.multiprocessors()), 512, 0, stream>>>(
                  data.as<uint4>(), kBytes / 16, sink.as<uint32_t>());
            }};
  };
  Condition condition{"R", "read of 8 GiB, grid stride, blocks of 512 threads", static_cast<double>(kBytes)};
  const int rounds = session.rounds;
  session.rounds = 7;
  const auto timings = session.measure(condition, {contender("4 blocks an SM, 4 vectors", read_all<4>, 4),
                                                   contender("4 blocks an SM, 8 vectors", read_all<8>, 4),
                                                   contender("16 blocks an SM, 4 vectors", read_all<4>, 16)});
  session.rounds = rounds;
  for (const auto& t : timings) session.read_ceiling = std::max(session.read_ceiling, condition.bytes / t.us);
}

}  // namespace ridge::bench
