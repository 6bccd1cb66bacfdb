#pragma once
// Timing and recording for the GPU bench: contenders are captured into CUDA graphs that rotate over input
// sets (together above 200 MB, so that nothing is served from the L2 cache that a model would not find there)
// and replayed in turn.

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace ridge::bench {

/// Prints and exits on an error: a bench has nobody to hand one to.
void must(cudaError_t error, const char* what);
void must(const Status& status);

struct DeviceBlock {
  explicit DeviceBlock(int64_t bytes);
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock(DeviceBlock&& other) noexcept : data(other.data), bytes(other.bytes) { other.data = nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  void* data = nullptr;
  int64_t bytes = 0;
};

/// A value of the deterministic field of random numbers that fills every input: about normal, mean 0,
/// deviation 1. Host and device compute the same, so a reference needs no download.
__host__ __device__ inline float field(uint64_t index, uint64_t seed) {
  uint64_t z = index + seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  // The sum of four 16-bit uniforms has variance 4/12.
  const int sum = static_cast<int>(z & 0xffff) + static_cast<int>(z >> 16 & 0xffff) +
                  static_cast<int>(z >> 32 & 0xffff) + static_cast<int>(z >> 48);
  return static_cast<float>(sum - 131070) * (1.7320508f / 65536.0f);
}

/// Fills `count` elements with scale * field(first + i, seed).
template <class T>
void fill_field(T* data, int64_t count, uint64_t seed, float scale = 1, uint64_t first = 0);
void fill_bytes(void* data, int64_t bytes, int value);

struct Contender {
  std::string name;
  std::function<void(cudaStream_t, int set)> run;  // queues one call on input set `set`
  bool ours = true;
};

struct Timing {
  std::string name;
  bool ours = true;
  double us = 0, us_low = 0, us_high = 0;  // median and quartiles over the replays
  int replays = 0, calls = 0;
};

struct Condition {
  std::string row;   // file name of the result: "G1-4096x4096-m1"
  std::string text;  // what was measured
  double bytes = 0, flops = 0;
  int sets = 1;
  double target_us = 0;  // 0: none
  std::string target;    // in words
};

class Session {
 public:
  Session(std::string out_folder, std::string commit, std::string command);
  ~Session();
  cudaStream_t stream() const { return stream_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Read ceiling of this run in bytes/us, once measured.
  double read_ceiling = 0;
  int rounds = 15;
  double graph_us = 2500;

  /// Times the contenders in turn, prints a line each, and records the row.
  std::vector<Timing> measure(const Condition& condition, const std::vector<Contender>& contenders);
  /// Quick time of one contender, us, for choosing among many.
  double glance(const Contender& contender, int sets);
  void note(const std::string& line);
  void check(bool ok, const std::string& what, double worst, double bound);
  int failures() const { return failures_; }

 private:
  struct Graph;
  std::string clocks() const;
  std::string folder_, commit_, command_, rows_, checks_;
  cudaStream_t stream_ = nullptr;
  int multiprocessors_ = 0, failures_ = 0, checks_done_ = 0;
  std::string device_, started_;
};

/// cuBLASLt as the peer of a linear: the fastest of its heuristics' first 24 for a problem, whatever order
/// its sums have.
class LinearPeer {
 public:
  /// y[m, n] = x[m, k] · w[n, k]ᵀ in bf16, f32 sums. Contenders "cublaslt first" and "cublaslt best"; none
  /// where the library is not there.
  std::vector<Contender> contenders(Session& session, int64_t m, int64_t n, int64_t k,
                                    std::function<void*(int)> w, std::function<void*(int)> x,
                                    std::function<void*(int)> y, int sets);

 private:
  std::vector<std::shared_ptr<void>> kept_;
};

void run_ceiling(Session& session);
void check_vocabulary(Session& session);
void check_linear(Session& session);
void check_attention(Session& session);
void check_prefill(Session& session);
void check_rows(Session& session);
void bench_linear(Session& session, LinearPeer& cublas, bool sweep);
void bench_prompts(Session& session);
void bench_attention(Session& session, bool sweep);
void bench_prefill(Session& session);
void bench_rows(Session& session, bool sweep);
void bench_packed(Session& session, bool sweep);

}  // namespace ridge::bench
