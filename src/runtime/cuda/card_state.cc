#include "runtime/cuda/card_state.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "runtime/cuda/cuda_device.h"
#include "runtime/device_state.h"

namespace ridge {

namespace {

// The few functions of libnvidia-ml that are used, as NVIDIA's NVML API reference declares them: 0 is
// success.
using Handle = void*;
using Read = int (*)(Handle, unsigned*);
using ReadKind = int (*)(Handle, int kind, unsigned*);

class Library {
 public:
  Library() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto begin = find<int (*)()>("nvmlInit_v2");
    ready_ = begin != nullptr && begin() == 0;
  }
  ~Library() {
    if (const auto end = find<int (*)()>("nvmlShutdown"); ready_ && end != nullptr) (void)end();
    if (library_ != nullptr) (void)dlclose(library_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  template <class F>
  F find(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library_, name));
  }
  bool ready() const { return ready_; }

 private:
  void* library_;
  bool ready_ = false;
};

}  // namespace

std::vector<CardReading> card_state(int ordinal) {
  const Library library;
  char bus[32] = {};
  Handle card = nullptr;
  const auto by_bus = library.find<int (*)(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (!library.ready() || by_bus == nullptr ||
      cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) != cudaSuccess || by_bus(bus, &card) != 0)
    return {};
  std::vector<CardReading> readings;
  unsigned value = 0;
  const auto clock = library.find<ReadKind>("nvmlDeviceGetClockInfo"),
             heat = library.find<ReadKind>("nvmlDeviceGetTemperature");
  constexpr int kSm = 1, kMemory = 2, kChip = 0;
  if (clock != nullptr && clock(card, kSm, &value) == 0)
    readings.push_back({"SM clock", double(value), "MHz"});
  if (clock != nullptr && clock(card, kMemory, &value) == 0)
    readings.push_back({"memory clock", double(value), "MHz"});
  if (const auto power = library.find<Read>("nvmlDeviceGetPowerUsage");
      power != nullptr && power(card, &value) == 0)
    readings.push_back({"power", value / 1e3, "W"});
  if (heat != nullptr && heat(card, kChip, &value) == 0)
    readings.push_back({"temperature", double(value), "C"});
  return readings;
}

StateReader cuda_state_reader(const Device& device) {
  const int ordinal = static_cast<const CudaDevice&>(device).ordinal();
  return [ordinal] {
    DeviceState state;
    for (const CardReading& r : card_state(ordinal)) {
      if (r.what == "SM clock") state.clock_mhz = r.value;
      if (r.what == "power") state.power_w = r.value;
    }
    return state;
  };
}

}  // namespace ridge
