#pragma once
// ThreadTeam: a fixed set of threads that meet in well under a microsecond.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/status.h"
#include "runtime/device.h"

namespace ridge {

/// Work runs on the calling thread and threads() - 1 others. Waiters spin for a bounded time, then sleep, so
/// that more threads than cores, or an idle engine, do not burn the machine. One caller at a time.
class ThreadTeam {
 public:
  static Result<std::unique_ptr<ThreadTeam>> create(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;

  int threads() const { return threads_; }

  /// Calls work(thread) for every thread in [0, threads) and returns when all are done. `work` must not
  /// throw.
  template <class Work>
  void run(int threads, const Work& work) {
    if (threads <= 1 && !metering_) return work(0);
    start([](const void* w, int thread) { (*static_cast<const Work*>(w))(thread); }, &work, threads);
  }
  /// Measures each round (three clock readings a thread) until switched off.
  void set_metering(bool on) { metering_ = on; }
  const StreamMeter& meter() const { return meter_; }

  /// Inside run(threads, …): returns once all of its threads have called it.
  void barrier(int threads);

 private:
  using Entry = void (*)(const void* work, int thread);
  explicit ThreadTeam(int threads) : threads_(threads), busy_(static_cast<size_t>(threads)) {}
  void start(Entry entry, const void* work, int threads);
  void serve(int thread);
  void work_metered(int thread);
  void add_to_meter(int64_t begin_ns, int64_t end_ns);

  int threads_;
  std::vector<std::thread> workers_;
  Entry entry_ = nullptr;
  const void* work_ = nullptr;
  int active_ = 0;
  bool metering_ = false;
  StreamMeter meter_;
  struct alignas(64) Busy {
    int64_t ns = 0;
  };
  std::vector<Busy> busy_;                        // by thread, of the running round
  alignas(64) std::atomic<uint32_t> round_{0};    // a new value starts a round; all ones ends the team
  alignas(64) std::atomic<int32_t> pending_{0};   // workers that have not finished the round
  alignas(64) std::atomic<uint32_t> arrived_{0};  // barrier: arrivals, and below its generation
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<bool> stop_{false};
};

}  // namespace ridge
