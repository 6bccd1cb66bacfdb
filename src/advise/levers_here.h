#pragma once
// Which levers change anything on this model, device and workload: known before a token is computed.

#include <string>
#include <vector>

#include "advise/advise.h"

namespace ridge {

/// The levers that would change how the workload runs, with `from` filled in; of those that take a number,
/// the values that levers_of() tries. Writes the model's plan of one step and runs nothing. Errors: those of
/// the plan.
Result<std::vector<Lever>> levers_here(Session& session, const SessionOptions& options,
                                       const WorkloadOptions& workload, int64_t prompt_tokens);

/// Refuses levers that are how the workload runs already, or that change nothing in it: kInvalidArgument
/// naming the lever, why, and the levers that there are.
Status check_levers(Session& session, const SessionOptions& options, const WorkloadOptions& workload,
                    int64_t prompt_tokens, const std::vector<Lever>& levers);

}  // namespace ridge
