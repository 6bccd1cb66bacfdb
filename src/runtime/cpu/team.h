#pragma once
// ThreadTeam: a fixed set of threads that meet in well under a microsecond.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "account/ticks.h"
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
  /// On: forgets the rounds noted so far and notes each that follows, until switched off: every thread writes
  /// when its own work began and ended, into memory of its own, and nothing is worked out before meter().
  void set_metering(bool on);
  int64_t noted_rounds() const { return noted_; }
  /// Where the time of rounds [first, last) of those noted went; they are kept until metering is on again.
  StreamMeter meter(int64_t first, int64_t last) const;

  /// Inside run(threads, …): returns once all of its threads have called it.
  void barrier(int threads);

 private:
  using Entry = void (*)(const void* work, int thread);
  explicit ThreadTeam(int threads) : threads_(threads), notes_(static_cast<size_t>(threads)) {}
  void start(Entry entry, const void* work, int threads);
  void serve(int thread);
  void note_round();
  void work_noted(int thread);

  int threads_;
  std::vector<std::thread> workers_;
  Entry entry_ = nullptr;
  const void* work_ = nullptr;
  int active_ = 0;
  bool metering_ = false;
  int64_t noted_ = 0;  // rounds
  Instant metering_began_, metering_ended_;
  struct Span {
    int64_t begin = 0, end = 0;  // ticks
  };
  struct Round {
    Span span;
    int active = 0;
  };
  struct alignas(64) Notes {
    std::vector<Span> work;  // by round; only its own thread writes, while the round runs
  };
  std::vector<Round> rounds_;
  std::vector<Notes> notes_;                      // by thread
  alignas(64) std::atomic<uint32_t> round_{0};    // a new value starts a round; all ones ends the team
  alignas(64) std::atomic<int32_t> pending_{0};   // workers that have not finished the round
  alignas(64) std::atomic<uint32_t> arrived_{0};  // barrier: arrivals, and below its generation
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<bool> stop_{false};
};

}  // namespace ridge
