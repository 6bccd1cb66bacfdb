#pragma once
// PriceBook: what the calls of a plan cost, step after step, without working it out again. A profile must not
// slow down what it observes: deriving cost and names from the descriptions takes as long as a small call.

#include <memory>
#include <string>
#include <vector>

#include "plan/step_plan.h"

namespace ridge {

struct CallName {
  const char* op = "";
  std::string label, kernel, shape, formats;
};

class PriceBook {
 public:
  /// Calls that cost the same in every step: one operator and kernel, the same shapes, types and scalars, and
  /// the same batch_sources(). Most have none of these, which alone change from step to step, and are priced
  /// once.
  struct Group {
    AnyOperator* op = nullptr;
    Selection selection;
    std::shared_ptr<const Cost> cost;
    std::string kernel, shape, fixed_shape, formats;
    std::vector<KernelLaunch> launches;  // of the plan's first run
    std::vector<int64_t> batch;          // values that cost and shape are of
    size_t row = kNone;  // the caller's: where it keeps what it knows of this shape; kNone when new
  };
  static constexpr size_t kNone = ~size_t{0};

  explicit PriceBook(const StepPlan& plan);
  /// What a call costs with these args, its own or AnyOperator::args_of_now() of them, and its names.
  Group& price(size_t call, const void* args);
  /// The first call of each group whose cost may change from step to step: to note after every step, for a
  /// look at all calls costs a miss of the cache each.
  const std::vector<size_t>& varying() const { return varying_; }
  /// The place in varying() of the call's group; kNone: its cost stays.
  size_t place_of(size_t call) const { return place_of_[group_of_[call]]; }
  /// The row of a call as it was last priced.
  size_t row_of(size_t call) const { return groups_[group_of_[call]].row; }
  /// The call's names at a shape of its group.
  const std::shared_ptr<const CallName>& name_of(size_t call, const std::string& shape);

 private:
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;                        // of each call
  std::vector<std::shared_ptr<const CallName>> names_;  // likewise, as last asked for
  std::vector<size_t> varying_, place_of_;
  std::vector<int64_t> batch_;
};

}  // namespace ridge
