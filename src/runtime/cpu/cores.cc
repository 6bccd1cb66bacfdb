#include "runtime/cpu/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/control_groups.h"
#include "base/text.h"

namespace ridge {

namespace {

/// Processors' worth of time that `group` may take; infinity where it says nothing.
double quota_of(const ControlGroup& group) {
  std::optional<int64_t> quota, period;
  if (group.version == 2) {  // "150000 100000" or "max 100000", in microseconds
    const std::string both = kernel_file(group.folder + "cpu.max");
    quota = leading_number(both);
    if (const size_t blank = both.find(' '); blank != std::string::npos)
      period = leading_number(std::string_view(both).substr(blank));
  } else {  // a quota of -1 is none
    quota = leading_number(kernel_file(group.folder + "cpu.cfs_quota_us"));
    period = leading_number(kernel_file(group.folder + "cpu.cfs_period_us"));
  }
  if (!quota || *quota <= 0) return HUGE_VAL;
  return static_cast<double>(*quota) / static_cast<double>(std::max<int64_t>(period.value_or(100000), 1));
}

/// "socket:core" of a logical CPU, so that hyper-threads of one core count once.
std::string core_of(const std::string& processors, int cpu) {
  const std::string topology = text(processors, "/cpu", cpu, "/topology/");
  return text(leading_number(kernel_file(topology + "physical_package_id")).value_or(0), ":",
              leading_number(kernel_file(topology + "core_id")).value_or(cpu));
}

}  // namespace

int allowed_cores(const CoreSources& sources) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cores.insert(core_of(sources.processors, cpu));
  double allowed = std::max<double>(static_cast<double>(cores.size()), 1);
  for (const ControlGroup& group : control_groups("cpu", sources.proc, sources.cgroups))
    allowed = std::min(allowed, std::max(1.0, std::floor(quota_of(group))));
  return static_cast<int>(allowed);
}

}  // namespace ridge
