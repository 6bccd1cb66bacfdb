#pragma once
// A workload's account, measured: the one way there, for the program and the C API.

#include "lab/profile.h"
#include "lab/workload.h"

namespace ridge {

struct ProfileRun {
  std::string command;                          // for provenance
  std::function<bool()> interrupted = nullptr;  // asked between steps
  bool keep_slices = true;                      // steps and calls one by one, for a trace
};

/// Runs a workload once unseen and then observed, up to five times as long as they take no more than 3 s in
/// all, and judges the shortest against `machine`: what else a machine does only ever makes a run longer.
/// Errors: those of workload_prompt and run_workload.
Result<Profile> profile_workload(Session& session, const Machine& machine, const WorkloadOptions& workload,
                                 const ProfileRun& run);

/// Of what `observe` gives, up to five times as long as that takes no more than 3 s in all, the one whose
/// steps took least; its `runs` says of how many. Errors: those of `observe`.
Result<Profile> shortest_profile(const std::function<Result<Profile>()>& observe);

}  // namespace ridge
