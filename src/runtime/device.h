#pragma once
// What plan, dispatch and engine know of a device. Backends implement these two classes; nothing else names
// them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace ridge {

/// CPU instruction sets, narrowest first; `none` on other backends.
enum class Isa : uint8_t { none, scalar, avx2, avx512 };
const char* isa_name(Isa isa);
Result<Isa> parse_isa(std::string_view name);
/// Ok where this processor has every extension that our kernels of that set use, and this build has them.
/// Errors: kDeclined, naming the set and which of the two lacks it.
Status check_isa(Isa isa);
/// The widest set that check_isa() takes; scalar if it takes none.
Isa native_isa();

/// What dispatch matches kernels against.
struct Target {
  std::string backend = "cpu";
  Isa isa = Isa::scalar;
};

class Recorder;  // account/recorder.h

/// Where the time inside calls went; all 0 where a backend cannot tell.
struct StreamMeter {
  int64_t meetings = 0;     // times that threads were woken and met again
  double wait_ns = 0;       // until the slowest began: a thread was woken late, or had no core
  double barrier_ns = 0;    // from the end of the last thread's work to the end of the meeting
  double imbalance_ns = 0;  // slowest thread less the mean of those that worked
  double occupancy_ns = 0;  // share of the device's threads that had no work, in time of the slowest
};

/// What one kernel launch of a call takes of a multiprocessor, by the device's own report.
struct KernelLaunch {
  std::string kernel;
  int64_t blocks = 0, threads = 0;                            // of the launch; of a block
  int registers = 0;                                          // a thread
  int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;  // a block
  int64_t local_bytes = 0;  // a thread: registers spilled to memory, and arrays that lie there
  int blocks_fitting = 0;   // on one multiprocessor, by registers, shared memory and threads
  double occupancy = 0;     // warps of the blocks that fit and exist, of those it can hold
  bool operator==(const KernelLaunch&) const = default;
};

/// A place in a stream's queue that the host can wait for.
class Event {
 public:
  virtual ~Event() = default;
  /// Returns when everything queued before its last record() is done; the first error of it, if any.
  virtual Status wait() = 0;
};

/// Calls that a stream recorded instead of running them, started as one. What they point to must stay.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Memory of the device that it took, beside what allocate() gives; as near as the device can tell.
  virtual int64_t bytes() const { return 0; }
};

/// An ordered queue of operator calls. CPU streams run each call before it returns. Not thread-safe: one
/// thread a stream.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual const Target& target() const = 0;
  /// Waits for everything queued; the first error of a queued call, if any.
  virtual Status synchronize() = 0;

  /// Copies, queued like calls. The host's side is memory of Device::allocate_staging and stays as it is
  /// until they are done.
  virtual Status upload(void* to_device, const void* from_staging, int64_t bytes) = 0;
  virtual Status download(void* to_staging, const void* from_device, int64_t bytes) = 0;
  virtual Result<std::unique_ptr<Event>> create_event() = 0;
  virtual Status record(Event& event) = 0;

  /// Whether calls can be recorded. Between begin_recording() and end_recording() calls do not run; only
  /// calls may come between.
  virtual bool records_graphs() const { return false; }
  virtual Status begin_recording() { return declined("this device records no graphs"); }
  virtual Result<std::unique_ptr<Graph>> end_recording() { return declined("this device records no graphs"); }
  virtual Status launch(Graph&) { return declined("this device records no graphs"); }

  /// Times that the device itself notes, for devices on which calls run after they return. The next call
  /// writes stamp `index` when all before it is done; recorded calls write theirs at each launch.
  virtual bool has_stamps() const { return false; }
  virtual Status prepare_stamps(int64_t) { return declined("this device notes no times"); }
  virtual void stamp_next(int64_t) {}
  /// A call of its own that does nothing else: the end of what came before.
  virtual Status stamp_now(int64_t) { return declined("this device notes no times"); }
  /// Nanoseconds of the device's clock, by index; waits for what is queued.
  virtual Status read_stamps(std::vector<int64_t>*) { return declined("this device notes no times"); }

  /// Metering notes each meeting of the device's threads: on, it forgets those noted before.
  virtual void set_metering(bool) {}
  virtual int64_t metered_rounds() const { return 0; }
  /// Of the last round noted, the tick (account/ticks.h) at which it ended.
  virtual int64_t metered_until() const { return 0; }
  /// Of the rounds [first, last) noted since metering was last switched on.
  virtual StreamMeter meter(int64_t, int64_t) const { return {}; }

  /// Until null is given: adds each launch of calls that this thread queues. Slow: for a first run, not for
  /// steps. Devices without launches add nothing.
  virtual void note_launches(std::vector<KernelLaunch>*) {}

  /// Names what is queued until the matching close_range, for profilers of the device's maker.
  virtual void open_range(const char*) {}
  virtual void close_range() {}
  /// The same of a call of operator `op`, whose name in a plan is `label`: read_fault() too then names it.
  virtual void open_call(const char* op, std::string_view) { open_range(op); }
  virtual void close_call() { close_range(); }
  /// Once queued work is done: the first index that a kernel found to fit nothing since this was last asked,
  /// as kInvalidArgument with operator, call and value; ok too on devices whose kernels do not look.
  virtual Status read_fault() { return {}; }

  /// Memory of Device::allocate that the stream keeps for itself.
  virtual int64_t held_bytes() const { return 0; }

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
  /// Whether the host may read and write what allocate() gives.
  virtual bool host_visible() const = 0;
  /// What allocate() may still give.
  virtual Result<MemoryRoom> room() const = 0;
  /// Bytes of allocate() that are held now, by the device's own count; -1 where it keeps none.
  virtual int64_t bytes_in_use() const { return -1; }
  /// Uninitialised device memory.
  virtual Result<Buffer> allocate(int64_t bytes) = 0;
  /// Host memory that the device copies from and to while the host goes on.
  virtual Result<Buffer> allocate_staging(int64_t bytes) { return Buffer::allocate(bytes); }
  virtual Status upload(void* to_device, const void* from_host, int64_t bytes) = 0;
  virtual Status download(void* to_host, const void* from_device, int64_t bytes) = 0;
};

}  // namespace ridge
