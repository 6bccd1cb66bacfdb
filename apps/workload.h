#pragma once
// Running a workload of given lengths: what profile, bench and advise share.

#include "engine/session.h"
#include "lab/profile.h"

namespace ridge::app {

struct WorkloadOptions {
  std::string prompt;  // empty: prompt_tokens tokens of a fixed pseudo-random sequence
  int64_t prompt_tokens = 512, output_tokens = 64, batch = 1;
  uint64_t seed = 1;
};

/// The prompt's ids: the text, or a reproducible sequence of ordinary tokens.
Result<std::vector<int32_t>> workload_prompt(const Session& session, const WorkloadOptions& options);

/// Runs `batch` requests to the end, all submitted at once; an answer goes on past end tokens, so that
/// lengths are as asked.
Status run_workload(Session& session, const std::vector<int32_t>& prompt, const WorkloadOptions& options);

/// What every figure carries.
Workload describe_workload(Session& session, const std::vector<int32_t>& prompt,
                           const WorkloadOptions& options);

}  // namespace ridge::app
