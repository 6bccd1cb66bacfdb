#pragma once
// A device apart from the host that computes nothing but ids: its memory cannot be touched, its calls run
// when they are waited for, and its kernels write down that they were called.

#include <sys/mman.h>

#include <deque>

#include "engine/generate.h"
#include "ops/add/add.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/embedding/embedding.h"
#include "ops/feed_tokens/feed_tokens.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/gelu_mul/gelu_mul.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/quantize_rows/quantize_rows.h"
#include "ops/registry.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/sample/sample.h"
#include "ops/silu_mul/silu_mul.h"

namespace ridge {

inline constexpr int64_t kWorkspace = 12345;

// Of the step whose calls are running.
inline Tensor g_ids, g_positions;

/// Memory of a device: addresses that the host may not touch, and what lies behind them. A read or write
/// through such an address ends the test program.
class FarMemory {
 public:
  static Result<Buffer> allocate(int64_t bytes) {
    const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1) + 4095) / 4096 * 4096;
    void* const far = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (far == MAP_FAILED) return internal_error("mmap of ", size, " bytes");
    pieces()[static_cast<std::byte*>(far)].resize(size, std::byte{0xee});
    held() += bytes;
    return Buffer(far, bytes, [](void* p, int64_t n) {
      held() -= n;
      pieces().erase(static_cast<std::byte*>(p));
      munmap(p, static_cast<size_t>(std::max<int64_t>(n, 1) + 4095) / 4096 * 4096);
    });
  }
  /// Bytes of all that is allocated now.
  static int64_t& held() {
    static int64_t bytes = 0;
    return bytes;
  }
  /// What the device keeps at such an address.
  static std::byte* behind(const void* address) {
    const auto* const a = static_cast<const std::byte*>(address);
    auto at = pieces().upper_bound(const_cast<std::byte*>(a));
    EXPECT_NE(at, pieces().begin()) << "no device memory lies there";
    --at;
    EXPECT_LT(a - at->first, static_cast<std::ptrdiff_t>(at->second.size()));
    return at->second.data() + (a - at->first);
  }
  static Tensor behind(Tensor t) {
    t.data = behind(t.data);
    return t;
  }

 private:
  static std::map<std::byte*, std::vector<std::byte>>& pieces() {
    static std::map<std::byte*, std::vector<std::byte>> all;
    return all;
  }
};

class NullDevice;

/// Records: calls come into effect when the stream is waited for, so that nothing can rely on their running
/// at once.
class NullStream final : public Stream {
 public:
  explicit NullStream(NullDevice& device) : device_(device) {}
  const Target& target() const override;
  Status synchronize() override {
    ++synchronized;
    return drain();
  }
  Status upload(void* to, const void* from, int64_t bytes) override {
    ++copies;
    return queue([=] { std::memcpy(FarMemory::behind(to), from, static_cast<size_t>(bytes)); });
  }
  Status download(void* to, const void* from, int64_t bytes) override {
    ++copies;
    return queue([=] { std::memcpy(to, FarMemory::behind(from), static_cast<size_t>(bytes)); });
  }
  struct Place final : Event {
    explicit Place(NullStream& s) : stream(s) {}
    Status wait() override {
      ++NullStream::waits;
      return stream.drain_to(at);
    }
    NullStream& stream;
    int64_t at = 0;
  };
  Result<std::unique_ptr<Event>> create_event() override {
    return std::unique_ptr<Event>(std::make_unique<Place>(*this));
  }
  Status record(Event& event) override {
    static_cast<Place&>(event).at = queued_;
    return {};
  }

  bool records_graphs() const override { return records; }
  Status begin_recording() override {
    recording_ = true;
    return {};
  }
  struct Calls final : Graph {
    std::vector<std::function<void()>> calls;
    int64_t bytes() const override { return 8 * static_cast<int64_t>(calls.size()); }
  };
  Result<std::unique_ptr<Graph>> end_recording() override {
    recording_ = false;
    auto graph = std::make_unique<Calls>();
    graph->calls.swap(recorded_);
    ++graphs;
    return std::unique_ptr<Graph>(std::move(graph));
  }
  Status launch(Graph& graph) override {
    ++launched;
    for (auto& call : static_cast<Calls&>(graph).calls) RIDGE_TRY(queue(call));
    return {};
  }

  bool has_stamps() const override { return stamps_on; }
  Status prepare_stamps(int64_t count) override {
    return queue([this, count] { stamps_.assign(static_cast<size_t>(count), -1); });
  }
  void stamp_next(int64_t index) override { next_stamp_ = index; }
  Status stamp_now(int64_t index) override {
    stamp_next(index);
    return call([] {});
  }
  Status read_stamps(std::vector<int64_t>* stamps) override {
    RIDGE_TRY(drain());
    *stamps = stamps_;
    return {};
  }
  /// A call of 100 ns of the device's clock, stamped at its start where that was asked for.
  Status call(std::function<void()> work) {
    if (launch_notes_ != nullptr) launch_notes_->push_back({.kernel = "null_kernel", .registers = 7});
    return queue([this, work = std::move(work), stamp = std::exchange(next_stamp_, -1)] {
      if (stamp >= 0) stamps_.at(static_cast<size_t>(stamp)) = clock_;
      work();
      clock_ += 100;
    });
  }

  void note_launches(std::vector<KernelLaunch>* launches) override { launch_notes_ = launches; }

  void open_range(const char* name) override { ranges.emplace_back(depth_++, name); }
  void close_range() override { --depth_; }
  Status read_fault() override { return std::exchange(fault, {}); }

  Status queue(std::function<void()> work) {
    if (recording_) {
      recorded_.push_back(std::move(work));
      return {};
    }
    queue_.push_back(std::move(work)), ++queued_;
    return {};
  }
  Status drain() { return drain_to(queued_); }
  Status drain_to(int64_t end) {
    for (; done_ < end; ++done_) queue_.front()(), queue_.pop_front();
    return {};
  }
  int64_t queued() const { return queued_; }

  static std::vector<std::string> called;                  // operators, in order, on all streams
  static std::vector<std::pair<int, std::string>> ranges;  // depth and name, as they were opened
  static Status fault;                                     // that the device's checks found
  static int synchronized, waits, copies, graphs, launched;
  static bool records, stamps_on;

 private:
  NullDevice& device_;
  std::vector<KernelLaunch>* launch_notes_ = nullptr;
  std::vector<int64_t> stamps_;
  int64_t next_stamp_ = -1, clock_ = 1000000;
  std::deque<std::function<void()>> queue_;
  std::vector<std::function<void()>> recorded_;
  int64_t queued_ = 0, done_ = 0;
  bool recording_ = false;
  int depth_ = 0;
};
inline std::vector<std::string> NullStream::called;
inline std::vector<std::pair<int, std::string>> NullStream::ranges;
inline Status NullStream::fault;
inline int NullStream::synchronized = 0, NullStream::waits = 0, NullStream::copies = 0,
           NullStream::graphs = 0, NullStream::launched = 0;
inline bool NullStream::records = false, NullStream::stamps_on = false;

class NullDevice final : public Device {
 public:
  explicit NullDevice(std::string backend) : target_{std::move(backend), Isa::none} {}
  const Target& target() const override { return target_; }
  std::string describe() const override { return "nothing"; }
  bool host_visible() const override { return false; }
  Result<MemoryRoom> room() const override { return MemoryRoom{INT64_MAX, "nothing is kept"}; }
  Result<std::unique_ptr<Stream>> create_stream() override {
    return std::unique_ptr<Stream>(std::make_unique<NullStream>(*this));
  }
  Result<Buffer> allocate(int64_t bytes) override {
    if (bytes > most - FarMemory::held()) return resource_exhausted(bytes, " bytes of nothing");
    allocated += bytes, ++allocations;
    return FarMemory::allocate(bytes);
  }
  int64_t bytes_in_use() const override { return FarMemory::held(); }
  Result<Buffer> allocate_staging(int64_t bytes) override {
    ++allocations;
    return Buffer::allocate(bytes);
  }
  Status upload(void* to, const void* from, int64_t bytes) override {
    uploaded += bytes;
    if (bytes > 0) std::memcpy(FarMemory::behind(to), from, static_cast<size_t>(bytes));
    return {};
  }
  Status download(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, FarMemory::behind(from), static_cast<size_t>(bytes));
    return {};
  }
  int64_t allocated = 0, uploaded = 0, allocations = 0, most = INT64_MAX;

 private:
  Target target_;
};
inline const Target& NullStream::target() const {
  return device_.target();
}

/// The token after `id` at `position`: a chain that only the right inputs continue.
inline int32_t next_token(int32_t id, int64_t position) {
  return static_cast<int32_t>((int64_t{id} * 31 + position * 7 + 11) % 300);
}

// What the present step's calls left for its sampling: the token and position of each row of logits.
inline std::vector<std::pair<int32_t, int64_t>> g_rows;

template <class A>
void compute(const A& args) {
  NullStream::called.push_back(registered<A>().name());
  if constexpr (std::is_same_v<A, FeedTokensArgs>) {
    const Tensor ids = FarMemory::behind(args.ids), source = FarMemory::behind(args.source),
                 sampled = FarMemory::behind(args.sampled);
    for (int64_t t = 0; t < ids.dim(0); ++t)
      if (source.i64(t) >= 0) ids.set(sampled.f64(source.i64(t)), t);
  }
  if constexpr (std::is_same_v<A, RopeArgs>) g_positions = FarMemory::behind(args.positions);
  if constexpr (std::is_same_v<A, EmbeddingArgs>) g_ids = FarMemory::behind(args.ids);
  if constexpr (std::is_same_v<A, GatherRowsArgs>) {
    const Tensor rows = FarMemory::behind(args.index);
    g_rows.clear();
    for (int64_t r = 0; r < rows.dim(0); ++r)
      g_rows.emplace_back(g_ids.i64(rows.i64(r)), g_positions.i64(rows.i64(r)));
  }
  if constexpr (std::is_same_v<A, SampleArgs>) {
    const Tensor ids = FarMemory::behind(args.ids), status = FarMemory::behind(args.status),
                 logprob = FarMemory::behind(args.logprob);
    for (int64_t r = 0; r < ids.dim(0); ++r) {
      const auto& [id, position] = g_rows.at(static_cast<size_t>(r));
      ids.set(next_token(id, position), r), status.set(0, r);
      logprob.set(-next_token(id, position), r);  // so that a result of another step shows
    }
  }
}

template <class A>
Status note(Stream& stream, const A& args) {
  if constexpr (std::is_same_v<A, LinearArgs>)
    if (stream.workspace_bytes() < kWorkspace) return internal_error("no workspace was lent");
  return static_cast<NullStream&>(stream).call([args] { compute(args); });
}

template <class A>
void noting(Kernels<A>& kernels) {
  Kernel<A> k;
  k.name = text(registered<A>().name(), "_null");
  k.run = note<A>;
  if constexpr (std::is_same_v<A, LinearArgs>) k.workspace = [](const A&) { return kWorkspace; };
  kernels.add(std::move(k));
}

template <class... A>
void give_kernels(const char* backend) {
  (static_cast<Registered<A>&>(registered<A>()).add(backend, Isa::none, noting<A>), ...);
}

}  // namespace ridge
