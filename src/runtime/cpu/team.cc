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
  (on ? metering_began_ : metering_ended_) = Instant::now();
  if (on) noted_ = 0;
  metering_ = on;
}

void ThreadTeam::work_on(int part) {
  if (!metering_) return entry_(work_, part);
  Span& span = notes_[static_cast<size_t>(part)].work[static_cast<size_t>(noted_)];
  span.begin = ticks();
  entry_(work_, part);
  span.end = ticks();
}

StreamMeter ThreadTeam::meter(int64_t first, int64_t last) const {
  StreamMeter m;
  const double ns = ns_per_tick(metering_began_, metering_ ? Instant::now() : metering_ended_);
  for (int64_t r = first; r < std::min(last, noted_); ++r) {
    const Round& round = rounds_[static_cast<size_t>(r)];
    int64_t slowest = 0, sum = 0, worked_until = round.span.begin;
    for (int t = 0; t < round.active; ++t) {
      const Span& work = notes_[static_cast<size_t>(t)].work[static_cast<size_t>(r)];
      slowest = std::max(slowest, work.end - work.begin), sum += work.end - work.begin;
      worked_until = std::max(worked_until, work.end);
    }
    const double mean = static_cast<double>(sum) / round.active;
    // Counters of two cores may be some ticks apart: what one part loses by that, the other gains.
    const auto outside = static_cast<double>(round.span.end - round.span.begin - slowest);
    const double late = std::clamp(static_cast<double>(worked_until - round.span.begin - slowest), 0.0,
                                   std::max(0.0, outside));
    m.meetings += round.active > 1;
    m.wait_ns += late * ns;
    m.barrier_ns += (outside - late) * ns;
    m.imbalance_ns += (static_cast<double>(slowest) - mean) * ns;
    m.occupancy_ns += mean * (threads_ - round.active) / threads_ * ns;
  }
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
  entry_ = entry, work_ = work, active_ = parts;
  if (metering_) note_round();
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
  if (metering_) rounds_[static_cast<size_t>(noted_++)].span.end = ticks();
}

/// Room for one more round in the notes of every part. No worker is in a round yet: their memory may move.
void ThreadTeam::note_round() {
  if (static_cast<size_t>(noted_) == rounds_.size()) {
    const size_t more = std::max<size_t>(1024, 2 * rounds_.size());
    rounds_.resize(more);
    for (Notes& n : notes_) n.work.resize(more);
  }
  rounds_[static_cast<size_t>(noted_)] = {{ticks(), 0}, active_};
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
