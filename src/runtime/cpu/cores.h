#pragma once
// How many threads this process can run at once to any use.

#include <string>

namespace ridge {

/// Where the kernel says it; others than the system's are for tests.
struct CoreSources {
  std::string proc = "/proc";                          // self/cgroup
  std::string cgroups = "/sys/fs/cgroup";              // cpu.max, cpu.cfs_quota_us
  std::string processors = "/sys/devices/system/cpu";  // cpuN/topology
};

/// Physical cores that the calling thread's affinity mask and the CPU quotas of its control groups (version 1
/// or 2, the tightest of those above it) allow: whole ones, at least 1. Hyper-threads of one core count once.
int allowed_cores(const CoreSources& sources = {});

}  // namespace ridge
