#include "runtime/cpu/team.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>

#include "base/limits.h"
#include "runtime/cpu/cores.h"

namespace ridge {

namespace {

// About 100 us of spinning: longer than what the host does between two operators or two steps (recording
// included), shorter than a time slice.
constexpr int kSpins = 10000;
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

void ThreadTeam::set_metering(bool on) {
  if (on) {
    metering_began_ = Instant::now(), noted_ = 0;
  } else if (metering_) {
    ns_per_tick_ = ns_per_tick(metering_began_, Instant::now());
  }
  metering_ = on;
}

void ThreadTeam::work_on(int part) {
  if (!metering_) return entry_(work_, part);
  Span& span = notes_[static_cast<size_t>(part)].work[static_cast<size_t>(noted_)];
  if (part > 0) span.begin = ticks();
  entry_(work_, part);
  span.end = ticks();
}

/// In whole ticks: this runs after each step, for every call.
StreamMeter ThreadTeam::meter(int64_t first, int64_t last) const {
  StreamMeter m;
  int64_t wait = 0, barrier = 0, slowest_all = 0;
  double mean_all = 0, idle = 0;
  for (int64_t r = first; r < std::min(last, noted_); ++r) {
    const auto at = static_cast<size_t>(r);
    const Round& round = rounds_[at];
    const int64_t begin = notes_[0].work[at].begin;
    int64_t slowest = 0, sum = 0, worked_until = begin;
    for (size_t t = 0; t < static_cast<size_t>(round.active); ++t) {
      const Span& work = notes_[t].work[at];
      slowest = std::max(slowest, work.end - work.begin), sum += work.end - work.begin;
      worked_until = std::max(worked_until, work.end);
    }
    // Counters of two cores may be some ticks apart: what one part loses by that, the other gains.
    const int64_t outside = round.end - begin - slowest;
    const int64_t late =
        std::clamp<int64_t>(worked_until - begin - slowest, 0, std::max<int64_t>(0, outside));
    m.meetings += round.active > 1;
    wait += late, barrier += outside - late, slowest_all += slowest;
    const double mean = static_cast<double>(sum) / round.active;
    mean_all += mean;
    if (round.active < threads_) idle += mean * (threads_ - round.active) / threads_;
  }
  m.wait_ns = static_cast<double>(wait) * ns_per_tick_;
  m.barrier_ns = static_cast<double>(barrier) * ns_per_tick_;
  m.imbalance_ns = (static_cast<double>(slowest_all) - mean_all) * ns_per_tick_;
  m.occupancy_ns = idle * ns_per_tick_;
  return m;
}

/// True for one caller a part and round. A thread that comes late finds its part taken, in this round or a
/// later one, and nothing else of the round: what entry_ and work_ point to may be gone.
bool ThreadTeam::take(int part, uint32_t round) {
  std::atomic<uint32_t>& taken = taken_[static_cast<size_t>(part)].round;
  uint32_t before = taken.load(std::memory_order_relaxed);
  return static_cast<int32_t>(round - before) > 0 &&
         taken.compare_exchange_strong(before, round, std::memory_order_acq_rel);
}

void ThreadTeam::start(Entry entry, const void* work, int parts, bool may_help) {
  parts = std::clamp(parts, 1, threads_);
  entry_ = entry, work_ = work;
  if (metering_) begin_round(parts);
  if (parts == 1) {
    work_on(0);
  } else {
    const uint32_t round = round_.load(std::memory_order_relaxed) + 1;
    finished_.store(0, std::memory_order_relaxed);
    // Workers without a part find it taken.
    for (int t = parts; t < threads_; ++t)
      taken_[static_cast<size_t>(t)].round.store(round, std::memory_order_relaxed);
    round_.store(round, std::memory_order_release);
    round_.notify_all();
    work_on(0);
    int32_t others = parts - 1;
    for (int part = 1; may_help && part < parts; ++part)
      if (take(part, round)) work_on(part), --others;
    for (int32_t done; (done = finished_.load(std::memory_order_acquire)) != others;)
      wait_until(threads_, finished_, done,
                 [&] { return finished_.load(std::memory_order_acquire) != done; });
  }
  if (metering_) rounds_[static_cast<size_t>(noted_++)].end = ticks();
}

/// Makes room for one more round in the notes of every part; no worker is in a round yet: their memory may
/// move.
void ThreadTeam::begin_round(int parts) {
  const auto at = static_cast<size_t>(noted_);
  if (at == rounds_.size()) {
    const size_t more = std::max<size_t>(1024, 2 * rounds_.size());
    rounds_.resize(more);
    for (Notes& n : notes_) n.work.resize(more);
  }
  rounds_[at].active = parts;
  notes_[0].work[at].begin = ticks();
}

void ThreadTeam::serve(int thread) {
  for (uint32_t seen = 0;;) {
    wait_until(threads_, round_, seen, [&] { return round_.load(std::memory_order_acquire) != seen; });
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (!take(thread, seen)) continue;
    work_on(thread);
    finished_.fetch_add(1, std::memory_order_acq_rel);
    finished_.notify_one();
  }
}

}  // namespace ridge
