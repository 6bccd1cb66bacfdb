// The ceilings of a GPU, each the best of several rounds: reads, writes and copies by working set, the matrix
// and f32 pipes on random data, what a launch costs, and the way to the host.

#include <algorithm>
#include <functional>

#include "account/recorder.h"
#include "base/random.h"
#include "device/convert.cuh"
#include "device/launch.cuh"
#include "device/mma.cuh"
#include "device/wgmma.cuh"
#include "machine/machine.h"
#include "runtime/cuda/card_state.h"
#include "runtime/cuda/cuda_device.h"

namespace ridge {

namespace {

constexpr int kThreads = 512, kUnroll = 4;

__global__ __launch_bounds__(kThreads) void probe_read(const uint4* data, int64_t vectors, int passes,
                                                       uint32_t* sink) {
  const int64_t step = int64_t{gridDim.x} * kThreads, first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  uint32_t sum = 0;
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t i = first; i < vectors; i += step * kUnroll) {
      uint4 v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        v[u] = i + u * step < vectors ? device::ptx::load_once(data + i + u * step) : uint4{};
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) sum += v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    }
  if (sum == 0x9e3779b9u) *sink = sum;  // so that the loads are not dropped
}

__global__ __launch_bounds__(kThreads) void probe_write(uint4* data, int64_t vectors, int passes,
                                                        uint32_t seed) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < vectors; i += step) {
      const uint32_t x = static_cast<uint32_t>(i) * 2654435761u + seed + pass;
      data[i] = {x, x ^ 0x5bd1e995u, x + 77, ~x};
    }
}

__global__ __launch_bounds__(kThreads) void probe_copy(uint4* to, const uint4* from, int64_t vectors,
                                                       int passes) {
  const int64_t step = int64_t{gridDim.x} * kThreads, first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t i = first; i < vectors; i += step * kUnroll) {
      uint4 v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * step < vectors) v[u] = device::ptx::load_once(from + i + u * step);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (i + u * step < vectors) to[i + u * step] = v[u];
    }
}

// What the matrix pipe is measured on: an element made of random bits, and a step of 32 bytes along k.
template <class T>
struct HalfWords {
  using Element = T;
  using Sum = float;
  static constexpr int kDepth = 16;
  static __device__ T element(uint32_t x) {
    return device::from_float<T>(static_cast<float>(static_cast<int32_t>(x)) * 0x1p-32f);
  }
  static __device__ void step(float (&d)[32], uint64_t a, uint64_t b) { device::wgmma_m64n64k16<T>(d, a, b); }
};
struct Fp8 {
  using Element = uint8_t;
  using Sum = float;
  static constexpr int kDepth = 32;
  static __device__ uint8_t element(uint32_t x) { return x >> 24 & 0xfe; }  // E4M3, but no NaN
  static __device__ void step(float (&d)[32], uint64_t a, uint64_t b) {
    device::ptx::wgmma_m64n64k32_e4m3(d, a, b);
  }
};
struct Int8 {
  using Element = uint8_t;
  using Sum = int32_t;
  static constexpr int kDepth = 32;
  static __device__ uint8_t element(uint32_t x) { return x >> 24; }
  static __device__ void step(int32_t (&d)[32], uint64_t a, uint64_t b) {
    device::ptx::wgmma_m64n64k32_s8(d, a, b);
  }
};

/// The matrix pipe fed from shared memory that stays as it is: 4 warpgroups of steps of 64 x 64 an SM.
template <class T>
__global__ __launch_bounds__(512) void probe_matrix(int rounds, float* sink) {
  extern __shared__ __align__(1024) unsigned char tiles[];  // 4 warpgroups x (a, b) of 64 rows of 128 bytes
  auto* const elements = reinterpret_cast<typename T::Element*>(tiles);
  for (int i = threadIdx.x; i < 4 * 2 * 8192 / static_cast<int>(sizeof(typename T::Element)); i += 512)
    elements[i] = T::element((i * 2654435761u) ^ (i >> 3));
  device::ptx::fence_proxy_async();
  __syncthreads();
  const uint32_t a = device::ptx::shared_address(tiles) + (threadIdx.x / 128) * 2 * 8192, b = a + 8192;
  typename T::Sum d[32] = {};
  for (int r = 0; r < rounds; ++r) {
    device::ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      T::step(d, device::matrix_descriptor(a + k * 32), device::matrix_descriptor(b + k * 32));
    device::ptx::wgmma_commit();
    device::ptx::wgmma_wait<0>();
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) sum += static_cast<float>(d[i]);
  if (sum == 1.2345f) *sink = sum;
}
template <class T>
constexpr double kMatrixFlops = 4.0 * 4 * 2 * 64 * 64 * T::kDepth;  // a block and round

__global__ __launch_bounds__(512) void probe_f32(int rounds, float* sink) {
  float x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = static_cast<float>(threadIdx.x + i);
  const float m = 1.0f + static_cast<float>(blockIdx.x) * 1e-7f;
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = fmaf(x[i], m, 0.5f);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += x[i];
  if (sum == 1.2345f) *sink = sum;
}
constexpr double kF32Flops = 512.0 * 8 * 2;

__global__ void probe_nothing(device::Upstream upstream) {
  upstream.release_next();
  (void)upstream.wait();
}

class CudaProbe {
 public:
  CudaProbe(CudaDevice& device, CudaStream& stream, Buffer memory, Buffer staging)
      : device_(device), stream_(stream), memory_(std::move(memory)), staging_(std::move(staging)) {}

  Status measure(Machine* m) {
    ThreadCeilings c;
    c.threads = 1;
    // Contents that no compression or zero skipping could shorten.
    write(memory_.bytes(), 1);
    for (int64_t bytes = 1 << 20; bytes <= memory_.bytes(); bytes *= 2) {
      RIDGE_ASSIGN(const BandwidthPoint p, bandwidth(bytes));
      c.curve.push_back(p);
    }
    RIDGE_ASSIGN(c.flops[static_cast<size_t>(Engine::kBf16)], matrix<HalfWords<bf16>>());
    RIDGE_ASSIGN(c.flops[static_cast<size_t>(Engine::kF16)], matrix<HalfWords<f16>>());
    RIDGE_ASSIGN(c.flops[static_cast<size_t>(Engine::kFp8)], matrix<Fp8>());
    RIDGE_ASSIGN(c.flops[static_cast<size_t>(Engine::kInt8)], matrix<Int8>());
    RIDGE_ASSIGN(c.flops[static_cast<size_t>(Engine::kF32)], rate([&](int repeats) {
                   probe_f32<<<blocks(4), 512, 0, stream_.native()>>>(repeats * 4096, sink());
                   return kF32Flops * 4096 * repeats * blocks(4);
                 }));
    m->by_threads.push_back(c);
    RIDGE_TRY(launches(m));
    return host(m);
  }

 private:
  unsigned blocks(int each) const { return static_cast<unsigned>(each * device_.multiprocessors()); }
  uint4* vectors() const { return static_cast<uint4*>(memory_.data()); }
  template <class T = float>
  T* sink_as() const {
    return static_cast<T*>(memory_.data());
  }
  float* sink() const { return sink_as<float>(); }

  void write(int64_t bytes, int passes) {
    probe_write<<<blocks(4), kThreads, 0, stream_.native()>>>(vectors(), bytes / 16, passes, 1);
  }

  /// Units a second: `queue(repeats)` queues work and returns its units; the best of several rounds, each
  /// long enough that its start does not count.
  Result<double> rate(const std::function<double(int)>& queue) {
    const auto timed = [&](int repeats, double* units) -> Result<double> {
      RIDGE_TRY(stream_.prepare_stamps(2));
      RIDGE_TRY(stream_.stamp_now(0));
      *units = queue(repeats);
      RIDGE_TRY(cuda_status(cudaGetLastError(), "a probe's launch"));
      RIDGE_TRY(stream_.stamp_now(1));
      std::vector<int64_t> stamps;
      RIDGE_TRY(stream_.read_stamps(&stamps));
      return std::max(1.0, static_cast<double>(stamps[1] - stamps[0])) / 1e9;
    };
    double units = 0, best = 0;
    RIDGE_ASSIGN(double once, timed(1, &units));
    RIDGE_ASSIGN(once, timed(1, &units));
    const int repeats = static_cast<int>(std::clamp(4e-3 / once, 1.0, 100000.0));
    for (int round = 0; round < 5; ++round) {
      RIDGE_ASSIGN(const double seconds, timed(repeats, &units));
      best = std::max(best, units / seconds);
    }
    return best;
  }

  Result<BandwidthPoint> bandwidth(int64_t bytes) {
    BandwidthPoint p;
    p.bytes = bytes;
    for (const int each : {2, 4}) {
      RIDGE_ASSIGN(const double read, rate([&](int repeats) {
                     probe_read<<<blocks(each), kThreads, 0, stream_.native()>>>(
                         vectors(), bytes / 16, repeats, sink_as<uint32_t>());
                     return static_cast<double>(bytes) * repeats;
                   }));
      p.read = std::max(p.read, read / 1e9);
    }
    RIDGE_ASSIGN(p.write, rate([&](int repeats) {
                   write(bytes, repeats);
                   return static_cast<double>(bytes) * repeats / 1e9;
                 }));
    RIDGE_ASSIGN(p.copy, rate([&](int repeats) {
                   probe_copy<<<blocks(4), kThreads, 0, stream_.native()>>>(vectors() + bytes / 32, vectors(),
                                                                            bytes / 32, repeats);
                   return static_cast<double>(bytes) * repeats / 1e9;
                 }));
    return p;
  }

  template <class T>
  Result<double> matrix() {
    const auto kernel = probe_matrix<T>;
    constexpr int kShared = 4 * 2 * 8192;
    RIDGE_TRY(cuda_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
                          "cudaFuncSetAttribute"));
    return rate([&](int repeats) {
      kernel<<<blocks(1), 512, kShared, stream_.native()>>>(repeats * 256, sink());
      return kMatrixFlops<T> * 256 * repeats * blocks(1);
    });
  }

  /// Microseconds a launch that does nothing, one after the other.
  Status launches(Machine* m) {
    constexpr int kLaunches = 1000;
    const auto queue = [&](bool dependent) -> Status {
      for (int i = 0; i < kLaunches; ++i)
        RIDGE_TRY(dependent
                      ? device::launch_dependent(stream_.native(), {}, "nothing", probe_nothing)
                      : device::launch(stream_.native(), {}, "nothing", probe_nothing, device::Upstream{}));
      return {};
    };
    for (const bool recorded : {false, true})
      for (const bool dependent : {false, true}) {
        std::unique_ptr<Graph> graph;
        if (recorded) {
          RIDGE_TRY(stream_.begin_recording());
          const Status queued = queue(dependent);
          RIDGE_ASSIGN(graph, stream_.end_recording());
          RIDGE_TRY(queued);
        }
        double best = HUGE_VAL;
        for (int round = 0; round < 5; ++round) {
          const int64_t begin = now_ns();
          RIDGE_TRY(recorded ? stream_.launch(*graph) : queue(dependent));
          RIDGE_TRY(stream_.synchronize());
          best = std::min(best, static_cast<double>(now_ns() - begin) / 1e3 / kLaunches);
        }
        const std::string what =
            text("launch ", recorded ? "in a graph" : "eager", dependent ? ", dependent" : "");
        m->others.push_back({recorded && dependent ? kLaunchMeasure : what, best, "us"});
      }
    return {};
  }

  Status host(Machine* m) {
    for (const bool up : {true, false}) {
      double best = 0;
      for (int round = 0; round < 5; ++round) {
        const int64_t begin = now_ns();
        RIDGE_TRY(up ? stream_.upload(memory_.data(), staging_.data(), staging_.bytes())
                     : stream_.download(staging_.data(), memory_.data(), staging_.bytes()));
        RIDGE_TRY(stream_.synchronize());
        best = std::max(best, static_cast<double>(staging_.bytes()) / static_cast<double>(now_ns() - begin));
      }
      m->others.push_back({up ? "host to device" : "device to host", best, "GB/s"});
    }
    return {};
  }

  CudaDevice& device_;
  CudaStream& stream_;
  Buffer memory_, staging_;
};

}  // namespace

Status probe_cuda(Device& any, Machine* machine) {
  auto& device = static_cast<CudaDevice&>(any);
  RIDGE_ASSIGN(const auto stream, device.create_stream());
  constexpr int64_t kMost = int64_t{8} << 30, kLeast = int64_t{256} << 20;  // of which caches hold no part
  RIDGE_ASSIGN(const MemoryRoom room, device.room());
  int64_t bytes = kMost;
  while (bytes > kLeast && bytes > room.bytes / 2) bytes /= 2;
  RIDGE_ASSIGN(Buffer memory, device.allocate(bytes));
  RIDGE_ASSIGN(Buffer staging, device.allocate_staging(int64_t{64} << 20));
  const auto before = card_state(device.ordinal());
  RIDGE_TRY(CudaProbe(device, as_cuda(*stream), std::move(memory), std::move(staging)).measure(machine));
  const auto after = card_state(device.ordinal());
  // Beside the figures: what the card did when they were taken. A machine without NVIDIA's management library
  // says nothing of it.
  for (const auto& [when, state] : {std::pair{"before", &before}, {"after", &after}})
    for (const auto& [what, value, unit] : *state)
      machine->others.push_back({text(what, " ", when), value, unit});
  return {};
}

}  // namespace ridge
