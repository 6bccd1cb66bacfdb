#include "lab/ceilings.h"

#include "base/log.h"
#include "machine/plausible.h"

namespace ridge {

Status check_ceilings(const Machine& machine, const Device& device, const std::string& name) {
  const int threads = device.host_threads(), most = machine.by_threads.back().threads;
  if (device.target().backend == "cpu" && threads > most)
    return declined(name, " has ceilings of up to ", most, " threads, none of ", threads,
                    ": measure it with as many ('ridge probe -t ", threads, " -o FILE') and give that file");
  return {};
}

void warn_if_disturbed(const Machine& machine) {
  if (const std::string why = disturbed(machine); !why.empty())
    log(LogLevel::kWarning, "the machine was not idle when its ceilings were measured (", why,
        "): verdicts may be wrong; run 'ridge probe' when it is");
}

}  // namespace ridge
