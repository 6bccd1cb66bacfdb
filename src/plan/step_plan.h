#pragma once
// StepPlan: one step of a model for one batch bucket, as a flat list of typed calls over named tensors.
// Written once by the model, then finished (fused, placed, checked, dispatched) and run call by call as often
// as the bucket returns.

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "account/cost.h"
#include "ops/any_operator.h"
#include "ops/dispatch.h"

namespace ridge {

struct PlanOptions {
  std::set<std::string> fusions;  // names of fused operators that may replace what they name
  bool graphs = true;             // record the calls once and launch them as one, where the device can
};

/// When an output reaches the host.
enum class Fetch : uint8_t { kAlways, kAsked };

/// A call after finish(): which kernel runs it, and after the first run how that is launched, on devices that
/// tell.
struct PlannedCall {
  AnyCall call;
  Selection selection;
  std::vector<KernelLaunch> launches = {};
};

/// What a metered run learns of one call: an operator's time is its end less the end of the call before it.
struct CallTime {
  int64_t end_ns = 0;
  int64_t rounds = 0;  // that the stream had metered by then
  StreamMeter meter;   // of this call alone; see read_times()
};

class StepPlan {
 public:
  explicit StepPlan(Device& device) : device_(&device) {}
  StepPlan(StepPlan&&) = default;
  StepPlan& operator=(StepPlan&&) = default;

  // Writing. Tensors have addresses of their own from the start, but no memory before finish().

  /// A tensor between calls: its memory is reused where lifetimes allow.
  Tensor activation(DType dtype, const Shape& shape);
  /// Tensors that live as long as the plan and are found by name: what the host fills before a step (zero at
  /// first), and what it reads after it.
  Tensor input(const std::string& name, DType dtype, const Shape& shape);
  Tensor output(const std::string& name, DType dtype, const Shape& shape, Fetch fetch = Fetch::kAlways);
  /// A number of the real batch, 0 at first; the engine sets it before each step. Stable address.
  const int64_t* counter(const std::string& name);
  /// A group of the batch's chunks, empty at first; the engine sets them before each step.
  std::shared_ptr<const std::vector<QueryChunk>> chunks(const std::string& name);
  template <class A>
  void call(std::string label, const A& args) {
    AnyOperator& op = registered<A>();
    calls_.push_back({AnyCall{&op, std::make_shared<A>(args), std::move(label)}, {}});
  }

  /// Fuses, places activations, allocates, checks every call and resolves its kernel.
  Status finish(const PlanOptions& options);

  // Running: next_step, fill the inputs, upload, run, download, wait, read the outputs.

  Tensor find(const std::string& name) const;  // on the device; aborts on an unknown name: a defect of ours
  /// The same where the host fills or reads it: the device's own memory where the host sees it, else the
  /// staging block of the present step, which the next step but one uses again.
  Tensor host(const std::string& name) const { return host(name, slot_); }
  Tensor host(const std::string& name, int slot) const;
  void next_step() { slot_ = 1 - slot_; }
  /// Which of the two staging blocks the present step has: by it, results are read once the next has begun.
  int slot() const { return slot_; }
  /// All inputs in one copy; outputs in one, with those of Fetch::kAsked when `all`. No copies where the host
  /// sees the device's memory.
  Status upload(Stream& stream) const;
  Status download(Stream& stream, bool all) const;
  bool has(const std::string& name) const;
  /// Whether the host reads and writes the plan's device's memory.
  bool host_visible() const { return device_->host_visible(); }
  void set_counter(const std::string& name, int64_t v);  // a counter that the model does not use is ignored
  void set_chunks(const std::string& name, std::vector<QueryChunk> chunks);  // likewise
  /// Runs all calls. With `times` (as many as calls), measures each; with `after`, calls it when a call is
  /// done. kCancelled, between two calls, once a stop is requested (base/stop.h).
  Status run(Stream& stream, std::vector<CallTime>* times = nullptr,
             const std::function<void(size_t call)>& after = nullptr);
  /// What run() noted, worked out, so that the run itself need not: where threads met, each call's meter; of
  /// a run whose calls the device timed itself, the times, put so that the last ends at `end_ns`. Returns the
  /// first call's start in the second case, else 0. Call it once the stream is done with the run, before the
  /// next.
  Result<int64_t> read_times(Stream& stream, int64_t end_ns, std::vector<CallTime>* times) const;
  /// A copy on the host of the bytes from a tensor's first element to its last, wherever it is, for
  /// comparisons.
  Result<Buffer> read(const Tensor& tensor) const;

  const std::vector<PlannedCall>& calls() const { return calls_; }
  /// Of this plan since finish(), and of no other: what was learned of its calls may be kept under it.
  uint64_t id() const { return id_; }
  Cost cost(size_t call) const {
    return calls_[call].call.op->cost(calls_[call].selection, calls_[call].call.args.get());
  }
  int64_t activation_bytes() const { return arena_.bytes(); }
  int64_t workspace_bytes() const { return workspace_.bytes(); }
  int64_t staging_bytes() const { return staging_.bytes(); }
  int64_t graph_bytes() const {
    return (graph_ ? graph_->bytes() : 0) + (stamped_graph_ ? stamped_graph_->bytes() : 0);
  }

 private:
  enum class Kind : uint8_t { kActivation, kInput, kOutput, kAskedOutput };
  struct Region {
    int64_t bytes = 0;
    Kind kind = Kind::kActivation;
    int64_t offset = -1;                  // in the arena
    size_t first = ~size_t{0}, last = 0;  // calls that use it
    bool persistent() const { return kind != Kind::kActivation; }
  };
  Tensor reserve(DType dtype, const Shape& shape, Kind kind);
  Region* region_of(const void* address, int64_t* within);
  void fuse(const PlanOptions& options);
  bool try_fuse(AnyOperator& fused, size_t at);
  bool try_fuse(AnyOperator& fused, const std::vector<const char*>& names, size_t at);
  void measure_lifetimes();
  int64_t place();
  int64_t place_persistent();
  void rebase(Tensor& t);
  Status run_calls(Stream& stream, std::vector<CallTime>* times, const std::function<void(size_t)>& after);
  Status run_stamped(Stream& stream);
  Status run_call(Stream& stream, size_t call);
  Status replay(Stream& stream, std::unique_ptr<Graph>* graph, bool stamped);

  Device* device_;
  uint64_t id_ = 0;
  std::vector<PlannedCall> calls_;
  std::vector<Region> regions_;
  std::vector<std::pair<std::string, Tensor>> named_;
  std::deque<std::pair<std::string, int64_t>> counters_;
  std::vector<std::pair<std::string, std::shared_ptr<std::vector<QueryChunk>>>> chunks_;
  Buffer arena_, workspace_, staging_;
  // The arena begins with the inputs, then the outputs, those of Fetch::kAsked last: each a range of it.
  int64_t input_bytes_ = 0, output_end_ = 0, asked_end_ = 0;
  int slot_ = 0;  // of the staging block's two: one is filled while the other's copies are under way
  bool graphs_ = false, stamped_ = false;  // stamped_: the last run's times are the device's
  int64_t runs_ = 0;
  std::unique_ptr<Graph> graph_, stamped_graph_;
};

}  // namespace ridge
