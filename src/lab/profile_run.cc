#include "lab/profile_run.h"

#include "account/recorder.h"
#include "base/build.h"
#include "base/clock.h"
#include "lab/probe.h"

namespace ridge {

namespace {

/// Observed runs, of which the shortest is kept, and how long they may take together.
constexpr int kRuns = 5;
constexpr int64_t kRunsNs = 3'000'000'000;

Result<Profile> observed(Session& session, const Machine& machine, const WorkloadOptions& workload,
                         const ProfileRun& run) {
  Profiler profiler(run.keep_slices);
  profiler.read_far(far_reader(session.device()));
  const int64_t tokenize_begin_ns = now_ns();
  RIDGE_ASSIGN(const std::vector<int32_t> prompt, workload_prompt(session, workload));
  WorkloadOptions arrived = workload;
  arrived.arrival_ns = now_ns();
  profiler.tokenized(tokenize_begin_ns, arrived.arrival_ns);
  session.engine().set_observer(&profiler);
  const Status status = run_workload(session.engine(), prompt, arrived, run.interrupted);
  session.engine().set_observer(nullptr);
  RIDGE_TRY(status);
  Profile profile = profiler.finish(machine, session.device().host_threads());
  profile.workload = describe_workload(session, prompt, workload);
  return profile;
}

}  // namespace

Result<Profile> shortest_profile(const std::function<Result<Profile>()>& observe) {
  const int64_t began = now_ns();
  RIDGE_ASSIGN(Profile profile, observe());
  int runs = 1;
  for (; runs < kRuns && (now_ns() - began) / runs * (runs + 1) <= kRunsNs; ++runs) {
    RIDGE_ASSIGN(Profile next, observe());
    if (next.wall_us() < profile.wall_us()) profile = std::move(next);
  }
  profile.runs = runs;
  return profile;
}

Result<Profile> profile_workload(Session& session, const Machine& machine, const WorkloadOptions& workload,
                                 const ProfileRun& run) {
  // One run unseen: plans are written, memory is touched, clocks rise. Its figures would be those of a cold
  // start.
  RIDGE_ASSIGN(const std::vector<int32_t> prompt, workload_prompt(session, workload));
  RIDGE_TRY(run_workload(session.engine(), prompt, workload, run.interrupted));
  RIDGE_ASSIGN(Profile profile, shortest_profile([&] { return observed(session, machine, workload, run); }));
  profile.command = run.command, profile.commit = built_commit();
  profile.date = utc_now();
  return profile;
}

}  // namespace ridge
