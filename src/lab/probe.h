#pragma once
// ridge probe: the ceilings of this machine, measured in well under a minute.

#include <functional>

#include "machine/machine.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {

struct ProbeOptions {
  int threads = 0;  // the largest count; 1 is measured too. 0: allowed_cores()
  Isa isa = Isa::none;
  int64_t largest_bytes = 512ll << 20;  // of the bandwidth curve: several times the last cache
  double seconds_per_point = 0.03;
  std::function<void(const char* what, double share)> progress;
};

/// Bandwidth by working set (read, write, copy), reads of main memory in pieces, arithmetic rates, the
/// meeting cost, and the pace of every operator's kernels on near data. Each point is the best of several
/// rounds in several sweeps: a ceiling, not a mean.
Result<Machine> probe_cpu(const ProbeOptions& options);

}  // namespace ridge
