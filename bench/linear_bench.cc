// linear against the limits of the processor it runs on: read bandwidth for one token, the int8 dot-product
// rate (AVX-512 VNNI) for many. Limits are measured between the samples, so that a share is a ratio of
// neighbours in time; medians of the shares are printed.
//
//   linear_bench [threads] [types, "q8_0,q4_1"] [activations: i8, f32, bf16] [shapes: smollm2, 1b]

#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/rows16/rows16.h"
#include "ops/linear/linear.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {
namespace {

/// Processor time, a thread's share: other processes then change a share little.
double seconds(int threads) {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec)) / threads;
}

/// Ten chains of dependent dot products, as many as the latency needs.
__attribute__((target("avx512f,avx512vnni"))) void dot_products(int64_t rounds, int* sink) {
  __m512i a[10];
  for (auto& v : a) v = _mm512_set1_epi32(*sink);
  const __m512i x = _mm512_set1_epi32(*sink + 0x01010101);
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 10
    for (auto& v : a) v = _mm512_dpbusd_epi32(v, x, x);
  for (auto& v : a) *sink += _mm512_cvtsi512_si32(v);
}
/// Four streams, a quarter of the range each.
__attribute__((target("avx512f"))) int64_t read_all(const uint8_t* p, int64_t bytes) {
  __m512i s[4] = {};
  const int64_t quarter = bytes / 4 / 64 * 64;
  for (int64_t i = 0; i < quarter; i += 64)
    for (int j = 0; j < 4; ++j) s[j] = _mm512_xor_si512(s[j], _mm512_load_si512(p + j * quarter + i));
  int64_t sum = 0;
  for (auto& v : s) sum += _mm_cvtsi128_si64(_mm512_castsi512_si128(v));
  return sum;
}

struct Bench {
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Stream> stream;
  Buffer workspace;
  ThreadTeam& team() { return device->team(); }

  double peak_gops() {
    const int64_t rounds = 200000;
    const double start = seconds(team().threads());
    team().run(team().threads(), [&](int) {
      int sink = 0;
      dot_products(rounds, &sink);
      if (sink == 12345) std::puts("");
    });
    return 10.0 * 128 * static_cast<double>(rounds) * team().threads() / (seconds(team().threads()) - start) *
           1e-9;
  }
  double read_gbs(const Buffer& memory) {
    const double start = seconds(team().threads());
    const int64_t share = memory.bytes() / team().threads() / 256 * 256;
    team().run(team().threads(), [&](int thread) {
      if (read_all(reinterpret_cast<const uint8_t*>(memory.begin()) + thread * share, share) == 12345)
        std::puts("");
    });
    return static_cast<double>(share * team().threads()) / (seconds(team().threads()) - start) * 1e-9;
  }
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

/// One row of the table: samples of a call beside samples of the limit.
void measure(Bench& b, DType type, DType x_type, int64_t tokens, int64_t out, int64_t in) {
  const int64_t matrix = rows16::layout(type)->bytes(out, in);
  const bool decode = tokens == 1;
  const int64_t copies = decode ? std::max<int64_t>(1, (288 << 20) / matrix) : 1;
  Buffer w = Buffer::allocate(copies * matrix, Pages::kHuge).take();
  Random random(1);
  for (int64_t i = 0; i + 4 <= w.bytes(); i += 4) {
    // Any bytes will do for codes; floats and f16 scales stay small and finite.
    const uint32_t bits = random.bits() & 0x2fff2fffu;
    std::memcpy(w.begin() + i, &bits, 4);
  }
  std::vector<uint8_t> x(static_cast<size_t>(tokens * in * 4));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i % 61);
  std::vector<float> y(static_cast<size_t>(tokens * out)),
      scale(static_cast<size_t>(tokens * in / 32), 0.01f);
  LinearArgs a;
  a.y = Tensor(y.data(), {tokens, out}), a.x = Tensor(x.data(), x_type, {tokens, in});
  a.w = Tensor(w.data(), type, {out, in}), a.w.layout = rows16::layout(type);
  if (x_type == kI8) a.x_scale = Tensor(scale.data(), {tokens, in / 32});
  std::vector<double> shares, rates;
  const double work = 2.0 * static_cast<double>(tokens * out) * static_cast<double>(in);
  for (int sample = 0; sample < 9; ++sample) {
    const double before = decode ? b.read_gbs(w) : b.peak_gops();
    double amount = 0, start = seconds(b.team().threads()), spent = 0;
    for (int64_t i = 0; i < copies || spent < 0.02; ++i) {
      a.w.data = w.begin() + i % copies * matrix;
      if (const Status s = linear(*b.stream, a); !s.ok())
        std::printf("%s\n", s.message().c_str()), std::exit(1);
      amount += decode ? static_cast<double>(matrix) : work;
      spent = seconds(b.team().threads()) - start;
    }
    const double after = decode ? b.read_gbs(w) : b.peak_gops();
    rates.push_back(amount / spent * 1e-9);
    shares.push_back(rates.back() / (0.5 * (before + after)));
  }
  std::printf("%-5s x %-4s %4lld x %5lld x %5lld  %8.1f %s  %3.0f %% of %s\n", dtype_name(type),
              dtype_name(x_type), static_cast<long long>(tokens), static_cast<long long>(out),
              static_cast<long long>(in), median(rates), decode ? "GB/s  " : "Gflop/s", 100 * median(shares),
              decode ? "read" : "int8 peak");
  std::fflush(stdout);
}

int main_of(int argc, char** argv) {
  if (native_isa() != Isa::avx512) {
    std::puts("linear_bench measures its limits with AVX-512 VNNI, which this processor has not");
    return 1;
  }
  CpuOptions options;
  options.threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::string types = argc > 2 ? argv[2] : "q8_0,q4_1,q4_0,q5_0,q4_k,q6_k,bf16";
  const std::string activations = argc > 3 ? argv[3] : "i8", shapes = argc > 4 ? argv[4] : "1b";
  Bench b;
  b.device = CpuDevice::create(options).take();
  b.stream = b.device->create_stream().take();
  b.workspace = Buffer::allocate(8 << 20, Pages::kHuge).take();
  b.stream->set_workspace(b.workspace.data(), b.workspace.bytes());
  const std::vector<std::pair<int64_t, int64_t>> list =
      shapes == "1b" ? std::vector<std::pair<int64_t, int64_t>>{{2048, 2048}, {8192, 2048}, {2048, 8192}}
                     : std::vector<std::pair<int64_t, int64_t>>{
                           {576, 576}, {192, 576}, {1536, 576}, {576, 1536}, {49152, 576}};
  std::printf("%d threads, int8 peak %.0f Gop/s\n", b.team().threads(), b.peak_gops());
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto type = static_cast<DType>(d);
    if (("," + types + ",").find(text(",", dtype_name(type), ",")) == std::string::npos) continue;
    const DType x = !is_block_quantized(type) && activations == "i8" ? kBF16
                    : activations == "i8"                            ? kI8
                    : activations == "bf16"                          ? kBF16
                                                                     : kF32;
    for (const auto& [out, in] : list) {
      if (in % dtype_block(type) != 0) continue;
      for (const int64_t tokens : {1, 8, 512})
        if (tokens < 512 || out < 40000) measure(b, type, x, tokens, out, in);
    }
  }
  return 0;
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  return ridge::main_of(argc, argv);
}
