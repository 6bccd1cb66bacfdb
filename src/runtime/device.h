#pragma once
// What plan, dispatch and engine know of a device. Backends implement these two classes; nothing else names
// them.

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tensor/tensor.h"

namespace ridge {

/// CPU instruction sets, narrowest first; `none` on other backends.
enum class Isa : uint8_t { none, scalar, avx2, avx512 };
const char* isa_name(Isa isa);
Result<Isa> parse_isa(std::string_view name);
/// The widest set of which this processor has every extension that our kernels use.
Isa native_isa();

/// What dispatch matches kernels against.
struct Target {
  std::string backend = "cpu";
  Isa isa = Isa::scalar;
};

class Recorder;  // account/recorder.h

/// Where the time inside calls went, summed since the stream was made; all 0 where a backend cannot tell, or
/// metering is off.
struct StreamMeter {
  int64_t meetings = 0;  // times that threads were woken and met again
  double barrier_ns =
      0;  // waking and meeting: from the start of a round to the start of work, and after the last worker
  double imbalance_ns = 0;  // slowest thread less the mean of those that worked
  double occupancy_ns = 0;  // share of the device's threads that had no work, in time of the slowest
};

/// An ordered queue of operator calls. CPU streams run each call before it returns. Not thread-safe: one
/// thread a stream.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual const Target& target() const = 0;
  /// Waits for everything queued; the first error of a queued call, if any.
  virtual Status synchronize() = 0;

  virtual void set_metering(bool) {}
  virtual StreamMeter meter() const { return {}; }

  /// Scratch memory that calls on this stream may use; at least Operator::workspace bytes, lent by the
  /// caller.
  void set_workspace(void* data, int64_t bytes) { workspace_ = data, workspace_bytes_ = bytes; }
  void* workspace() const { return workspace_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

  /// The account that records every call, or null.
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }
  Recorder* recorder() const { return recorder_; }

 private:
  void* workspace_ = nullptr;
  int64_t workspace_bytes_ = 0;
  Recorder* recorder_ = nullptr;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const Target& target() const = 0;
  virtual std::string describe() const = 0;
  /// Threads of the host that preparing data for this device may use.
  virtual int host_threads() const { return 1; }
  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  /// Uninitialised device memory.
  virtual Result<Buffer> allocate(int64_t bytes) = 0;
  virtual Status upload(void* to_device, const void* from_host, int64_t bytes) = 0;
  virtual Status download(void* to_host, const void* from_device, int64_t bytes) = 0;
};

}  // namespace ridge
