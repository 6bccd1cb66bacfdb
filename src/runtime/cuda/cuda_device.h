#pragma once
// An NVIDIA GPU as a device. CUDA errors become a Status that names the call.

#include <cuda_runtime_api.h>

#include "runtime/device.h"

namespace ridge {

/// "cudaMalloc: cudaErrorMemoryAllocation, out of memory", or ok.
Status cuda_status(cudaError_t error, const char* call);

/// Memory comes from the device's one pool, which keeps what is given back. Giving memory back waits for the
/// device.
class CudaDevice : public Device {
 public:
  /// The `ordinal`-th GPU. Errors: kNotFound without a GPU or driver; kDeclined, by name, for one that is not
  /// of compute capability 9.0: the kernels use its instructions.
  static Result<std::unique_ptr<CudaDevice>> create(int ordinal = 0);
  const Target& target() const override { return target_; }
  std::string describe() const override { return description_; }
  Result<std::unique_ptr<Stream>> create_stream() override;
  bool host_visible() const override { return false; }
  Result<MemoryRoom> room() const override;
  int64_t bytes_in_use() const override;
  Result<Buffer> allocate(int64_t bytes) override;
  Result<Buffer> allocate_staging(int64_t bytes) override;
  Status upload(void* to_device, const void* from_host, int64_t bytes) override;
  Status download(void* to_host, const void* from_device, int64_t bytes) override;
  int multiprocessors() const { return multiprocessors_; }
  int ordinal() const { return ordinal_; }

 private:
  Target target_{"cuda", Isa::none};
  std::string description_, name_;
  int ordinal_ = 0, multiprocessors_ = 0;
  cudaMemPool_t pool_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  /// Counters by which the blocks of one call agree who is last. Zero between calls: every kernel leaves them
  /// so.
  static constexpr int64_t kArrivals = int64_t{1} << 20;

  static Result<std::unique_ptr<Stream>> create(CudaDevice& device);
  ~CudaStream() override;
  const Target& target() const override { return device_.target(); }
  /// In the checked build the first fault is an error too.
  Status synchronize() override;
  Status upload(void* to_device, const void* from_staging, int64_t bytes) override;
  Status download(void* to_staging, const void* from_device, int64_t bytes) override;
  Result<std::unique_ptr<Event>> create_event() override;
  Status record(Event& event) override;

  bool records_graphs() const override { return true; }
  Status begin_recording() override;
  Result<std::unique_ptr<Graph>> end_recording() override;
  Status launch(Graph& graph) override;

  bool has_stamps() const override { return true; }
  Status prepare_stamps(int64_t count) override;
  void stamp_next(int64_t index) override;
  Status stamp_now(int64_t index) override;
  Status read_stamps(std::vector<int64_t>* stamps) override;

  void note_launches(std::vector<KernelLaunch>* launches) override;

  void open_range(const char* name) override;
  void close_range() override;
  void open_call(const char* op, std::string_view label) override;
  void close_call() override;
  Status read_fault() override;

  int64_t held_bytes() const override { return arrivals_.bytes() + stamps_.bytes() + fault_.bytes(); }

  cudaStream_t native() const { return stream_; }
  uint32_t* arrivals() const { return static_cast<uint32_t*>(arrivals_.data()); }  // [kArrivals]
  int multiprocessors() const { return device_.multiprocessors(); }

 private:
  explicit CudaStream(CudaDevice& device) : device_(device) {}
  uint64_t* stamp(int64_t index) const { return static_cast<uint64_t*>(stamps_.data()) + index; }
  CudaDevice& device_;
  cudaStream_t stream_ = nullptr;
  Buffer arrivals_, stamps_;
  int64_t stamp_count_ = 0;
  Buffer fault_;                                            // of the checked build
  std::vector<std::pair<std::string, std::string>> calls_;  // operator and label, by Fault::call
};

inline CudaStream& as_cuda(Stream& stream) {
  return static_cast<CudaStream&>(stream);
}

}  // namespace ridge
