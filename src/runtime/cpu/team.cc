#include "runtime/cpu/team.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>

#include "account/recorder.h"
#include "base/limits.h"
#include "runtime/cpu/cores.h"

namespace ridge {

namespace {

// About 20 us of spinning: longer than any gap between two operators of a step, shorter than a time slice.
constexpr int kSpins = 2000;
// A team with more threads than cores must not spin, or the waiting keep the working from running: it hands
// its core over so many times, then sleeps.
constexpr int kYields = 64;

bool crowded(int threads) {
  static const int cores = allowed_cores();
  return threads > cores;
}

template <class Value, class Changed>
void wait_until(int team, const std::atomic<Value>& value, Value seen, const Changed& changed) {
  if (crowded(team)) {
    for (int yield = 0; yield < kYields; ++yield) {
      if (changed()) return;
      sched_yield();
    }
  } else {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (changed()) return;
      _mm_pause();
    }
  }
  while (!changed()) {
    value.wait(seen, std::memory_order_acquire);
    seen = value.load(std::memory_order_acquire);
  }
}

}  // namespace

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::create(int threads) {
  if (threads < 1 || threads > limits::kThreads)
    return invalid_argument("threads is ", threads, ": use 1 to ", limits::kThreads);
  std::unique_ptr<ThreadTeam> team(new ThreadTeam(threads));
  try {
    for (int t = 1; t < threads; ++t) team->workers_.emplace_back([raw = team.get(), t] { raw->serve(t); });
  } catch (const std::system_error& e) {
    return resource_exhausted("cannot start thread ", team->workers_.size() + 1, " of ", threads, ": ",
                              e.what());
  }
  return team;
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (auto& w : workers_) w.join();
}

void ThreadTeam::work_metered(int thread) {
  const int64_t begin = now_ns();
  entry_(work_, thread);
  busy_[static_cast<size_t>(thread)].ns = now_ns() - begin;
}

void ThreadTeam::add_to_meter(int64_t begin_ns, int64_t end_ns) {
  int64_t slowest = 0, sum = 0;
  for (int t = 0; t < active_; ++t) {
    const int64_t ns = busy_[static_cast<size_t>(t)].ns;
    slowest = std::max(slowest, ns), sum += ns;
  }
  meter_.meetings += active_ > 1;
  meter_.barrier_ns += static_cast<double>(end_ns - begin_ns - slowest);
  meter_.imbalance_ns += static_cast<double>(slowest) - static_cast<double>(sum) / active_;
  meter_.occupancy_ns += static_cast<double>(sum) / active_ * (threads_ - active_) / threads_;
}

void ThreadTeam::start(Entry entry, const void* work, int threads) {
  threads = std::clamp(threads, 1, threads_);
  entry_ = entry, work_ = work, active_ = threads;
  const int64_t begin = metering_ ? now_ns() : 0;
  if (threads > 1) {
    pending_.store(threads_ - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  metering_ ? work_metered(0) : entry(work, 0);
  for (int32_t left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire))
    wait_until(threads_, pending_, left, [&] { return pending_.load(std::memory_order_acquire) != left; });
  if (metering_) add_to_meter(begin, now_ns());
}

void ThreadTeam::serve(int thread) {
  for (uint32_t seen = 0;;) {
    wait_until(threads_, round_, seen, [&] { return round_.load(std::memory_order_acquire) != seen; });
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (thread < active_) metering_ ? work_metered(thread) : entry_(work_, thread);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

void ThreadTeam::barrier(int threads) {
  if (threads <= 1) return;
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(threads)) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  wait_until(threads_, generation_, generation,
             [&] { return generation_.load(std::memory_order_acquire) != generation; });
}

}  // namespace ridge
