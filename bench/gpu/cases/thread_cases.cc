// Several threads of the host at once, each with a stream of its own.

#include <cuda_runtime_api.h>

#include <thread>

#include "base/random.h"
#include "base/text.h"
#include "cases/device_case.h"
#include "ops/linear/linear.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/silu_mul/silu_mul.h"

namespace ridge::cases {

namespace {

/// A norm, two linears and a gate on operands of their own.
struct Chain {
  Chain(Bench& bench, uint64_t seed) : stream(bench.another_stream()) {
    Random random(seed);
    const auto values = [&](int64_t n) {
      std::vector<float> v(static_cast<size_t>(n));
      for (float& x : v) x = random.normal();
      return v;
    };
    x = bench.upload(values(kTokens * kHidden), {kTokens, kHidden});
    norm = bench.upload(values(kHidden), {kHidden});
    gate_w = bench.upload_as(kBF16, values(kInner * kHidden), {kInner, kHidden});
    up_w = bench.upload_as(kBF16, values(kInner * kHidden), {kInner, kHidden});
    normed = bench.output(kF32, {kTokens, kHidden});
    gate = bench.output(kF32, {kTokens, kInner}), up = bench.output(kF32, {kTokens, kInner});
    y = bench.output(kF32, {kTokens, kInner});
  }
  Status queue() const {
    RIDGE_TRY(rms_norm(stream, {.y = normed, .x = x, .w = norm}));
    RIDGE_TRY(linear(stream, {.y = gate, .x = normed, .w = gate_w}));
    RIDGE_TRY(linear(stream, {.y = up, .x = normed, .w = up_w}));
    return silu_mul(stream, {.y = y, .gate = gate, .up = up});
  }
  /// Call by call, then recorded and replayed, while other threads do the same.
  Status run() const {
    for (int i = 0; i < 100; ++i) {
      RIDGE_TRY(queue());
      if (i % 10 == 9) RIDGE_TRY(stream.synchronize());
    }
    for (int i = 0; i < 10; ++i) {
      RIDGE_TRY(stream.begin_recording());
      const Status queued = queue();
      RIDGE_ASSIGN(const auto graph, stream.end_recording());
      RIDGE_TRY(queued);
      for (int replay = 0; replay < 20; ++replay) RIDGE_TRY(stream.launch(*graph));
      RIDGE_TRY(stream.synchronize());
    }
    return {};
  }
  static constexpr int64_t kTokens = 3, kHidden = 512, kInner = 768;
  CudaStream& stream;
  Tensor x, norm, gate_w, up_w, normed, gate, up, y;
};

void host_threads_have_streams_of_their_own(Bench& bench) {
  constexpr int kThreads = 4;
  std::vector<Chain> chains;
  for (uint64_t t = 0; t < kThreads; ++t) chains.emplace_back(bench, 100 + t);
  bench.must(cuda_status(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  std::vector<Status> ended(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { ended[t] = chains[t].run(); });
  for (std::thread& t : threads) t.join();
  std::vector<std::vector<float>> together;
  for (size_t t = 0; t < kThreads; ++t) bench.must(ended[t]), together.push_back(bench.floats(chains[t].y));
  for (size_t t = 0; t < kThreads; ++t) {
    bench.must(cuda_status(cudaMemset(chains[t].y.data, 0xff, static_cast<size_t>(chains[t].y.bytes())),
                           "cudaMemset"));
    bench.must(cuda_status(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
    bench.must(chains[t].queue());
    bench.must(chains[t].stream.synchronize());
    const std::vector<float> alone = bench.floats(chains[t].y);
    bool finite = true;
    for (const float v : alone) finite = finite && std::isfinite(v);
    bench.expect(finite, text("thread ", t, ": not all elements were written"));
    bench.expect(alone == together[t], text("thread ", t, ": other bits than alone"));
    bench.expect(t == 0 || alone != together[0], text("thread ", t, " has the answer of thread 0"));
  }
}

}  // namespace

std::vector<DeviceCase> thread_cases() {
  return {{"host_threads_have_streams_of_their_own", host_threads_have_streams_of_their_own, kLarge}};
}

}  // namespace ridge::cases
