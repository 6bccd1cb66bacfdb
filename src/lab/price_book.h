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
  std::string label, kernel, shape;
};

class PriceBook {
 public:
  /// Calls that cost the same whenever their scalars, counts and batch_key() are the same: one operator and
  /// kernel, the same shapes and types. Most have none of the two that change from step to step, and are
  /// priced once.
  struct Group {
    std::shared_ptr<const Cost> cost;
    std::string kernel, shape, formats;
    std::vector<std::string> params;  // scalars and counts
    std::vector<double> values;       // of those, which cost and shape are of
    uint64_t batch = 0;               // batch_key() likewise
    size_t row = kNone;  // the caller's: where it keeps what it knows of this shape; kNone when new
  };
  static constexpr size_t kNone = ~size_t{0};

  explicit PriceBook(const StepPlan& plan);
  /// What a call costs as the last step has left its counters, and its names. `plan` is the one that the book
  /// was made of.
  Group& price(const StepPlan& plan, size_t call);
  const std::shared_ptr<const CallName>& name_of(const StepPlan& plan, size_t call, const Group& priced);

 private:
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  // of each call
  std::vector<std::shared_ptr<const CallName>> names_;
  std::vector<double> values_;
};

}  // namespace ridge
