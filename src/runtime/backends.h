#pragma once
// The kinds of device of this build, by the name that options use. CMake writes the list.

#include "machine/machine.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device_state.h"

namespace ridge {

struct DeviceOptions {
  std::string backend = "cpu";
  CpuOptions cpu;
  int ordinal = 0;  // which device of the backend, where it has several
};

struct Backend {
  const char* name;  // "cpu", "cuda"
  Result<std::unique_ptr<Device>> (*create)(const DeviceOptions& options);
  /// A line for each device, and for each that would be declined, with the reason.
  std::vector<std::string> (*survey)();
  /// Measures the ceilings of a device of this backend into `machine`; null: lab/probe.h does it.
  Status (*probe)(Device& device, Machine* machine);
  /// Reads clock and power of a device of this backend.
  StateReader (*state_reader)(const Device& device);
};
const std::vector<Backend>& backends();

/// Errors: kDeclined naming a backend that is not in this build; what its create() finds.
Result<std::unique_ptr<Device>> create_device(const DeviceOptions& options);

/// Reads clock and power of `device`, which must outlive the reader. To be called between its steps, from the
/// thread that runs them.
StateReader state_reader(const Device& device);

}  // namespace ridge
