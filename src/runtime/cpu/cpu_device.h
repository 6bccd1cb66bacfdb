#pragma once
// The CPU as a device: a thread team and an instruction set.

#include <algorithm>

#include "runtime/cpu/cores.h"
#include "runtime/cpu/team.h"
#include "runtime/device.h"

namespace ridge {

struct CpuOptions {
  int threads = 0;      // 0: allowed_cores()
  Isa isa = Isa::none;  // none: native_isa()
  // Below this many bytes of work one thread is faster than meeting a second (test K10 holds it to that).
  double crossover_bytes = 96 << 10;
};

class CpuDevice : public Device {
 public:
  static Result<std::unique_ptr<CpuDevice>> create(const CpuOptions& options = {});
  const Target& target() const override { return target_; }
  std::string describe() const override;
  int host_threads() const override { return team_->threads(); }
  Result<std::unique_ptr<Stream>> create_stream() override;
  bool host_visible() const override { return true; }
  Result<MemoryRoom> room() const override { return memory_room(); }
  Result<Buffer> allocate(int64_t bytes) override { return Buffer::allocate(bytes, Pages::kHuge); }
  Status upload(void* to, const void* from, int64_t bytes) override;
  Status download(void* to, const void* from, int64_t bytes) override { return upload(to, from, bytes); }
  ThreadTeam& team() { return *team_; }
  double crossover_bytes() const { return crossover_bytes_; }

 private:
  Target target_;
  std::unique_ptr<ThreadTeam> team_;
  double crossover_bytes_ = 0;
};

/// Streams of one CpuDevice share its team: use them from one thread at a time.
class CpuStream final : public Stream {
 public:
  explicit CpuStream(CpuDevice& device) : device_(device) {}
  const Target& target() const override { return device_.target(); }
  Status synchronize() override { return {}; }
  Status upload(void* to, const void* from, int64_t bytes) override {
    return device_.upload(to, from, bytes);
  }
  Status download(void* to, const void* from, int64_t bytes) override {
    return device_.download(to, from, bytes);
  }
  Result<std::unique_ptr<Event>> create_event() override;
  Status record(Event&) override { return {}; }
  void set_metering(bool on) override { team().set_metering(on); }
  int64_t metered_rounds() const override { return device_.team().noted_rounds(); }
  int64_t metered_until() const override { return device_.team().noted_until(); }
  StreamMeter meter(int64_t first, int64_t last) const override { return device_.team().meter(first, last); }
  ThreadTeam& team() { return device_.team(); }
  int threads() const { return device_.team().threads(); }

  /// Threads worth waking for work that touches `bytes` (for compute-bound work: as many bytes as it would
  /// take as long to move).
  int threads_for(double bytes) const {
    if (bytes < device_.crossover_bytes() || bytes <= 0) return 1;
    return static_cast<int>(
        std::clamp(bytes / (device_.crossover_bytes() / 2), 1.0, static_cast<double>(threads())));
  }

  /// body(i) for i in [0, items), contiguous shares per thread. `bytes_each`: see threads_for.
  /// Which thread runs an item never changes its result.
  template <class Body>
  Status for_each(int64_t items, double bytes_each, const Body& body) {
    return for_ranges(items, bytes_each, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) body(i);
    });
  }
  /// body(first, last, thread) once per thread that has items.
  template <class Body>
  Status for_ranges(int64_t items, double bytes_each, const Body& body) {
    if (items <= 0) return {};
    const auto threads =
        static_cast<int>(std::min<int64_t>(items, threads_for(bytes_each * static_cast<double>(items))));
    team().run(threads, [&](int thread) {
      const int64_t first = items * thread / threads, last = items * (thread + 1) / threads;
      if (first < last) body(first, last, thread);
    });
    return {};
  }

 private:
  CpuDevice& device_;
};

/// Kernels of the CPU backend receive this from dispatch, which has matched the backend.
inline CpuStream& as_cpu(Stream& stream) {
  return static_cast<CpuStream&>(stream);
}

}  // namespace ridge
