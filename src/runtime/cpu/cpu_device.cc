#include "runtime/backends.h"

#include <cstring>

#include "base/log.h"

namespace ridge {

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(const CpuOptions& options) {
  auto device = std::make_unique<CpuDevice>();
  const Isa isa = options.isa == Isa::none ? native_isa() : options.isa;
  RIDGE_TRY(check_isa(isa));
  device->target_ = {"cpu", isa};
  const int cores = allowed_cores();
  RIDGE_ASSIGN(device->team_, ThreadTeam::create(options.threads == 0 ? cores : options.threads));
  if (options.threads > cores)
    log(LogLevel::kWarning, options.threads, " threads, but mask and quota allow ", cores,
        cores == 1 ? " core" : " cores", ": threads will take turns; the default is ", cores);
  device->crossover_bytes_ = options.crossover_bytes;
  return device;
}

std::string CpuDevice::describe() const {
  return text("cpu, ", isa_name(target_.isa), ", ", team_->threads(),
              team_->threads() == 1 ? " thread" : " threads");
}

Result<std::unique_ptr<Stream>> CpuDevice::create_stream() {
  return {std::make_unique<CpuStream>(*this)};
}

Result<std::unique_ptr<Event>> CpuStream::create_event() {
  // Every call is done before it returns.
  struct Done final : Event {
    Status wait() override { return {}; }
  };
  return {std::make_unique<Done>()};
}

Status CpuDevice::upload(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  return {};
}

Result<std::unique_ptr<Device>> create_cpu_device(const DeviceOptions& options) {
  RIDGE_ASSIGN(auto device, CpuDevice::create(options.cpu));
  return std::unique_ptr<Device>(std::move(device));
}

std::vector<std::string> survey_cpu() {
  return {text(isa_name(native_isa()), ", ", allowed_cores(), " cores allowed")};
}

}  // namespace ridge
