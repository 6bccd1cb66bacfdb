#pragma once
// What each fused operator is worth in a model's decode step: the step with all of them, without each one,
// and without any, of one model in one process.

#include <set>
#include <string>
#include <vector>

#include "engine/session.h"
#include "lab/profile.h"
#include "lab/workload.h"

namespace ridge {

/// One operator's part of a decode step.
struct StepPart {
  std::string op, kernel;
  double calls = 0, us = 0, bytes = 0;  // a step
  std::vector<KernelLaunch> launches;  // of one call of each of its shapes; empty where the device tells none
};

/// A decode step with some fusions left apart.
struct FusionVariant {
  std::string without;                       // an operator's name; "" with all, "all" without any
  double us = 0, us_least = 0, us_most = 0;  // a step, unobserved: median and range over the rounds
  double launches = 0, bytes = 0;            // a step
  std::vector<StepPart> parts;               // in the order of the step
};

struct FusionBench {
  Workload workload;
  int rounds = 0;
  std::vector<FusionVariant> variants;  // all, without each fused operator that the step holds, none
};

/// Decodes `workload.output_tokens` tokens after its prompt with each variant, in turns for `rounds` rounds,
/// and once more observed. Every variant has an engine of its own on the session's model, made when its turn
/// comes. Errors: those of the engine; kDeclined where the step holds no fused operator of `options`.
Result<FusionBench> bench_fusion(Session& session, const EngineOptions& options, const Machine& machine,
                                 const WorkloadOptions& workload, int rounds,
                                 const std::function<bool()>& interrupted);

/// The parts of `b` that `a` has not, or not as often: what a fusion became when it was left apart.
std::vector<StepPart> parts_beyond(const FusionVariant& b, const FusionVariant& a);

std::string fusion_text(const FusionBench& bench);
/// JSON: docs/json.md. `command` as it was given, for its provenance.
std::string fusion_json(const FusionBench& bench, const std::string& command);

}  // namespace ridge
