#pragma once
// Workloads: what is run, described, and a prompt for those that bring none.

#include <functional>

#include "lab/profile.h"

namespace ridge {

/// What to run, as profile, bench and advise are asked for it.
struct WorkloadOptions {
  std::string prompt;  // empty: prompt_tokens tokens of a fixed pseudo-random sequence
  int64_t prompt_tokens = 512, output_tokens = 64, batch = 1;
  uint64_t seed = 1;
  int64_t arrival_ns = 0;  // when the requests came, on now_ns()'s clock; 0: when they are submitted
};

/// Tokens of a sequence's prompt and answer; 0 where the prompt is text, whose tokens are not known yet, or
/// where the numbers are none that a context holds.
int64_t tokens_of(const WorkloadOptions& options);

/// The prompt's ids: the text, or a reproducible sequence of ordinary tokens.
/// kInvalidArgument, before anything is made: lengths or batch out of range, or prompt and answer together
/// more than the context holds, with all numbers.
Result<std::vector<int32_t>> workload_prompt(const Session& session, const WorkloadOptions& options);

/// Runs `batch` requests to the end, all submitted at once; an answer goes on past end tokens, so that
/// lengths are as asked. kCancelled once `interrupted` says so, which is asked between steps. After an error
/// the engine holds none of them.
Status run_workload(InferenceEngine& engine, const std::vector<int32_t>& prompt,
                    const WorkloadOptions& options, const std::function<bool()>& interrupted = nullptr);

/// Microseconds of a step in which all requests decode: from the step that ends the last prompt to the last
/// in which all still do, nobody observing. Errors: run_workload()'s; kInvalidArgument for an answer that
/// leaves no such step.
Result<double> decode_round_us(InferenceEngine& engine, const std::vector<int32_t>& prompt,
                               const WorkloadOptions& options,
                               const std::function<bool()>& interrupted = nullptr);

/// What every figure carries.
Workload describe_workload(Session& session, const std::vector<int32_t>& prompt,
                           const WorkloadOptions& options);

/// Everything about a session that a figure must carry; lengths and batch are the caller's to fill in.
Workload workload_of(const Session& session, const EngineOptions& options, const std::string& device);

/// The chain in the order it is applied, as "temperature 0.7, top-k 40, seed 1"; "greedy" when it cannot
/// draw.
std::string sampling_text(const SamplingParams& sampling);

/// A plain paragraph.
const char* fixed_text();

}  // namespace ridge
