#pragma once
// What a device's own sensors say beside a time that was measured on it.

#include <functional>
#include <optional>

namespace ridge {

/// What the machine does not tell is absent.
struct DeviceState {
  std::optional<double> clock_mhz;  // of the core that asks; of a GPU's multiprocessors
  std::optional<double> power_w;    // of the processor's packages since the reading before; of a GPU lately
};

/// Reads it now. Calls of one reader follow each other.
using StateReader = std::function<DeviceState()>;

}  // namespace ridge
