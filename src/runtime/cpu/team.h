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

/// Work is cut into parts, one for the calling thread and one for each of threads() - 1 others. A thread that
/// is not here yet, because it sleeps or another program has its core, is not waited for: the caller takes
/// its part. Waiters spin for a bounded time, then sleep, so that more threads than cores, or an idle engine,
/// do not burn the machine. One caller at a time.
class ThreadTeam {
 public:
  static Result<std::unique_ptr<ThreadTeam>> create(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;

  int threads() const { return threads_; }

  /// Calls work(part) for every part in [0, parts), at most threads() of them, and returns when all are done.
  /// Parts may run one after the other on one thread: none may wait for another. `work` must not throw.
  template <class Work>
  void run(int parts, const Work& work) {
    if (parts <= 1 && !metering_) return work(0);
    start(call<Work>, &work, parts, true);
  }
  /// The same with every part on a thread of its own, however long that one takes to come: for measuring what
  /// threads reach together.
  template <class Work>
  void run_together(int parts, const Work& work) {
    start(call<Work>, &work, parts, false);
  }

  /// On: forgets the rounds noted so far and notes each that follows, until switched off: every thread writes
  /// when its own work began and ended, into memory of its own, and nothing is worked out before meter(). A
  /// round begins as the caller's own part does; calling the others is in that part.
  void set_metering(bool on);
  int64_t noted_rounds() const { return noted_; }
  /// The end of the last round noted, in ticks; 0 when there is none.
  int64_t noted_until() const { return noted_ > 0 ? rounds_[static_cast<size_t>(noted_ - 1)].end : 0; }
  /// Where the time of rounds [first, last) of those noted went, once metering is off; they are kept until it
  /// is on again.
  StreamMeter meter(int64_t first, int64_t last) const;

 private:
  using Entry = void (*)(const void* work, int part);
  template <class Work>
  static void call(const void* work, int part) {
    (*static_cast<const Work*>(work))(part);
  }
  explicit ThreadTeam(int threads)
      : threads_(threads), taken_(static_cast<size_t>(threads)), notes_(static_cast<size_t>(threads)) {}
  void start(Entry entry, const void* work, int parts, bool may_help);
  bool take(int part, uint32_t round);
  void work_on(int part);
  void serve(int thread);
  void begin_round(int parts);

  int threads_;
  std::vector<std::thread> workers_;
  Entry entry_ = nullptr;
  const void* work_ = nullptr;
  bool metering_ = false;
  int64_t noted_ = 0;  // rounds
  Instant metering_began_;
  double ns_per_tick_ = 1;  // while metering was on
  struct Span {
    int64_t begin = 0, end = 0;  // ticks
  };
  struct Round {
    int64_t end = 0;  // ticks; it begins with part 0
    int active = 0;
  };
  struct alignas(64) Notes {
    std::vector<Span> work;  // by round; only who took the part writes, while the round runs
  };
  struct alignas(64) Taken {
    std::atomic<uint32_t> round{0};  // the last one whose part somebody took
  };
  std::vector<Round> rounds_;
  std::vector<Taken> taken_;                      // by part
  std::vector<Notes> notes_;                      // by part
  alignas(64) std::atomic<uint32_t> round_{0};    // a new value starts a round
  alignas(64) std::atomic<int32_t> finished_{0};  // parts that workers have done in the round
  alignas(64) std::atomic<bool> stop_{false};
};

}  // namespace ridge
