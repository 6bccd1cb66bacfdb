#include "lab/ceilings.h"

#include "base/log.h"
#include "machine/plausible.h"

namespace ridge {

Status check_ceilings(const Machine& machine, const Device& device, const std::string& name) {
  const int threads = device.host_threads();
  if (device.target().backend != "cpu") return {};
  std::string counts;
  for (const ThreadCeilings& t : machine.by_threads) {
    if (t.threads == threads) return {};
    counts += text(counts.empty() ? "" : " and ", t.threads);
  }
  return declined(name, " has ceilings of ", counts, counts == "1" ? " thread" : " threads", ", none of ",
                  threads, ": measure them with 'ridge probe -t ", threads, " -o FILE' and give that file");
}

void warn_if_disturbed(const Machine& machine) {
  if (const std::string why = disturbed(machine); !why.empty())
    log(LogLevel::kWarning, "the machine was not idle when its ceilings were measured (", why,
        "): verdicts may be wrong; run 'ridge probe' when it is");
}

}  // namespace ridge
