#pragma once
// Cases of single operators on the device: small inputs whose answer is known, built on the host.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_device.h"
#include "tensor/tensor.h"

namespace ridge::cases {

inline constexpr int32_t kPoisonIndex = 2147480000;

/// One device, one stream with workspace, and what became of the case that runs.
class Bench {
 public:
  explicit Bench(CudaDevice& device);
  CudaDevice& device() { return device_; }
  CudaStream& stream() { return *stream_; }
  /// A new stream with workspace of its own.
  CudaStream& another_stream();

  /// Device memory of `bytes`, not written.
  void* memory(int64_t bytes);
  template <class T>
  Tensor upload(const std::vector<T>& values, Shape shape) {
    void* at = memory(static_cast<int64_t>(values.size() * sizeof(T)));
    must(device_.upload(at, values.data(), static_cast<int64_t>(values.size() * sizeof(T))));
    return Tensor(static_cast<T*>(at), shape);
  }
  /// f32 values in another type.
  Tensor upload_as(DType dtype, const std::vector<float>& values, Shape shape);
  /// Poisoned with NaN (all bits set).
  Tensor output(DType dtype, Shape shape);
  template <class T>
  std::vector<T> download(const Tensor& t) {
    std::vector<T> values(static_cast<size_t>(t.elements()));
    must(device_.download(values.data(), t.data, static_cast<int64_t>(values.size() * sizeof(T))));
    return values;
  }
  std::vector<float> floats(const Tensor& t);

  void expect(bool good, const std::string& what);
  void expect_near(double got, double want, double bound, const std::string& what);
  void must(const Status& status);
  /// In the checked build the next run() ends in an error of just these words; in others nothing is found.
  void expect_fault(std::string message) { fault_ = std::move(message); }
  /// Runs `call` on the stream and waits.
  void run(const std::function<Status(CudaStream&)>& call);
  /// Captures `call` once and replays it.
  void replay(const std::function<Status(CudaStream&)>& call, int times) { (void)replay_us(call, times); }
  /// The same; microseconds a replay.
  double replay_us(const std::function<Status(CudaStream&)>& call, int times);

  /// Starts a case: forgets memory and failures of the one before.
  void begin();
  /// Between the parts of a case; what failed stays.
  void free_memory() { memory_.clear(); }
  int failures() const { return failures_; }
  const std::string& first_failure() const { return first_failure_; }

 private:
  void settle();
  CudaDevice& device_;
  std::vector<std::unique_ptr<Stream>> streams_;
  CudaStream* stream_ = nullptr;
  std::vector<Buffer> workspaces_, memory_;
  int failures_ = 0;
  std::string first_failure_, fault_;
};

/// Large ones are left out where a sanitizer watches, which takes a hundred times as long: gigabytes, many
/// thousand launches, or a matter of time.
enum class Size : uint8_t { kSmall, kLarge };
using enum Size;

struct DeviceCase {
  const char* id;
  void (*run)(Bench&);
  Size size = kSmall;
};
std::vector<DeviceCase> linear_cases();
std::vector<DeviceCase> cublaslt_cases();
std::vector<DeviceCase> attention_cases();
std::vector<DeviceCase> prefill_cases();
std::vector<DeviceCase> row_cases();
std::vector<DeviceCase> sample_cases();
std::vector<DeviceCase> chain_cases();
std::vector<DeviceCase> thread_cases();
std::vector<DeviceCase> bench_cases();
std::vector<DeviceCase> checked_cases();  // none but in the checked build

}  // namespace ridge::cases
