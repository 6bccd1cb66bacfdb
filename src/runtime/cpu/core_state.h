#pragma once
// A processor's clock and power, as the machine lets them be seen: also a virtual one.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridge {

/// Clock of the core that the caller runs on, measured in about 0.3 ms: additions that wait for each other
/// take a cycle each. The fastest of three chains counts: an interruption makes one slower, nothing faster.
double core_clock_mhz();

/// Mean power of all processor packages, by the zones named "package-N", from the energy counters of Linux's
/// power capping framework (Documentation/power/powercap/powercap.rst). Most machines let only root read
/// them, and virtual ones have none.
class PackagePower {
 public:
  explicit PackagePower(const std::string& folder = "/sys/class/powercap");
  /// Watts since the call before, at `ns` of now_ns(); absent the first time, and where a counter is not
  /// read.
  std::optional<double> watts(int64_t ns);

 private:
  struct Package {
    std::string path;       // of its counter
    double range_uj = 0;    // where the counter begins anew
    double energy_uj = -1;  // at the call before; -1: not read
  };
  std::vector<Package> packages_;
  int64_t ns_ = 0;
};

}  // namespace ridge
