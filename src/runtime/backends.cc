#include "runtime/backends.h"

namespace ridge {

Result<std::unique_ptr<Device>> create_device(const DeviceOptions& options) {
  std::string known;
  for (const Backend& b : backends()) {
    if (options.backend == b.name) return b.create(options);
    known += text(known.empty() ? "" : ", ", b.name);
  }
  return declined("device ", printable(options.backend), " is not in this build, which has ", known,
                  options.backend == "cuda" ? ": build the cuda preset, which needs nvcc" : "");
}

StateReader state_reader(const Device& device) {
  for (const Backend& b : backends())
    if (device.target().backend == b.name) return b.state_reader(device);
  return [] { return DeviceState(); };
}

}  // namespace ridge
