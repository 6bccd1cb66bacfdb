#pragma once
// The operands of a planned call on the host, before it runs and after.

#include <memory>
#include <string>
#include <vector>

#include "plan/step_plan.h"

namespace ridge {

/// Arguments of a call's operator whose operands the host can read, with the batch's numbers of that step.
struct HostArgs {
  std::shared_ptr<void> args;
  std::vector<Buffer> memory;
};

/// As the call will find them: copies of all that another call may write before they are looked at. Weights
/// and the cache of which the call only reads stay where they are, if the host sees them.
Result<HostArgs> args_before(const StepPlan& plan, size_t call);
/// With the outputs that the call wrote.
Result<HostArgs> args_after(const StepPlan& plan, size_t call);

/// The floats that a call put out: by operand, codes times their scales, of the cache the rows written, in
/// the order of their tokens.
struct FloatOutput {
  std::string operand;
  std::vector<float> values;
};
std::vector<FloatOutput> float_outputs(const AnyOperator& op, void* host_args);

}  // namespace ridge
