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
};

/// A call after finish(): which kernel runs it.
struct PlannedCall {
  AnyCall call;
  Selection selection;
};

/// What a metered run learns of one call: an operator's time is its end less the end of the call before it.
struct CallTime {
  int64_t end_ns = 0;
  StreamMeter meter;  // of this call alone
};

class StepPlan {
 public:
  explicit StepPlan(Device& device) : device_(&device) {}
  StepPlan(StepPlan&&) = default;
  StepPlan& operator=(StepPlan&&) = default;

  // Writing. Tensors have addresses of their own from the start, but no memory before finish().

  /// A tensor between calls: its memory is reused where lifetimes allow.
  Tensor activation(DType dtype, const Shape& shape);
  /// A tensor that lives as long as the plan and is found by name: what the engine fills before a step (zero
  /// at first) or reads after it.
  Tensor named(const std::string& name, DType dtype, const Shape& shape);
  /// A number of the real batch, 0 at first; the engine sets it before each step. Stable address.
  const int64_t* counter(const std::string& name);
  template <class A>
  void call(std::string label, const A& args) {
    AnyOperator& op = registered<A>();
    calls_.push_back({AnyCall{&op, std::make_shared<A>(args), std::move(label)}, {}});
  }

  /// Fuses, places activations, allocates, checks every call and resolves its kernel.
  Status finish(const PlanOptions& options);

  // Running
  Tensor find(const std::string& name) const;  // aborts on an unknown name: a defect of ours
  bool has(const std::string& name) const;
  void set_counter(const std::string& name, int64_t v);  // a counter that the model does not use is ignored
  /// Runs all calls. With `times` (as many as calls), measures each; with `after`, calls it when a call is
  /// done.
  Status run(Stream& stream, std::vector<CallTime>* times = nullptr,
             const std::function<void(size_t call)>& after = nullptr);

  const std::vector<PlannedCall>& calls() const { return calls_; }
  /// Of this plan since finish(), and of no other: what was learned of its calls may be kept under it.
  uint64_t id() const { return id_; }
  Cost cost(size_t call) const {
    return calls_[call].call.op->cost(calls_[call].selection, calls_[call].call.args.get());
  }
  int64_t activation_bytes() const { return arena_.bytes(); }
  int64_t workspace_bytes() const { return workspace_.bytes(); }

 private:
  struct Region {
    int64_t bytes = 0;
    bool persistent = false;
    int64_t offset = -1;                  // in the arena
    size_t first = ~size_t{0}, last = 0;  // calls that use it
  };
  Tensor reserve(DType dtype, const Shape& shape, bool persistent);
  Region* region_of(const void* address, int64_t* within);
  void fuse(const PlanOptions& options);
  bool try_fuse(AnyOperator& fused, size_t at);
  void measure_lifetimes();
  int64_t place();
  void rebase(Tensor& t);

  Device* device_;
  uint64_t id_ = 0;
  std::vector<PlannedCall> calls_;
  std::vector<Region> regions_;
  std::vector<std::pair<std::string, Tensor>> named_;
  std::deque<std::pair<std::string, int64_t>> counters_;
  Buffer arena_, workspace_;
};

}  // namespace ridge
