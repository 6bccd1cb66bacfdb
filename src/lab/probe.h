#pragma once
// ridge probe: the ceilings of this machine, measured in well under a minute.

#include <functional>

#include "machine/machine.h"
#include "machine/plausible.h"
#include "runtime/backends.h"

namespace ridge {

struct ProbeOptions {
  int threads = 0;  // the largest count; 1 is measured too. 0: allowed_cores()
  Isa isa = Isa::none;
  int64_t largest_bytes = 512ll << 20;  // of the bandwidth curve: several times the last cache
  double seconds_per_point = 0.03;
  // From the first on repetitions are left out, at the second the probe gives up.
  double hurry_after_s = kProbeSeconds, end_after_s = 75;
  std::function<void(const char* what, double share)> progress;
};

/// Bandwidth by working set (read, write, copy), reads of main memory in pieces, arithmetic rates, the
/// meeting cost, and the pace of every operator's kernels on near data. Each point is the best of several
/// rounds in several sweeps: a ceiling, not a mean. Ends by itself on a busy machine: past `hurry_after_s`
/// with what it has, which disturbed() then says; past `end_after_s` with kDeclined. kCancelled once a stop
/// is requested (base/stop.h).
Result<Machine> probe_cpu(const ProbeOptions& options);

/// The ceilings of any device: a processor's as above, others by their backend's own probe.
Result<Machine> probe_device(Device& device, const ProbeOptions& options);
/// What a machine file of this device must match.
MachineIdentity identity_of(const Device& device);
/// default_machine_path by instruction set, or by backend.
std::string machine_path_of(const Device& device);
struct ProbeLoops;  // lab/probe_loops.h
/// The loops of an instruction set.
ProbeLoops probe_loops_of(Isa isa);
/// What built this library.
std::string built_compiler();
/// Nanoseconds that this thread has had a core.
int64_t thread_ns();

}  // namespace ridge
