#include "capi/device.h"

using namespace ridge;
using namespace ridge::capi;

ridge_status ridge_device_create(const ridge_device_options* options, ridge_device** device) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(device, "device"));
    ridge_device_options o = RIDGE_DEVICE_OPTIONS_INIT;
    if (options != nullptr) RIDGE_TRY(read_struct(options, "options", &o));
    if (o.threads < 0)
      return invalid_argument("options->threads is ", o.threads, ": use 0 (default) or more");
    CpuOptions cpu;
    cpu.threads = o.threads;
    if (o.isa != nullptr) {
      RIDGE_ASSIGN(cpu.isa, parse_isa(o.isa));
    }
    auto shared = std::make_shared<SharedDevice>();
    RIDGE_ASSIGN(shared->device, CpuDevice::create(cpu));
    *device = new ridge_device{std::move(shared)};
    return {};
  });
}

void ridge_device_destroy(ridge_device* device) {
  delete device;
}

ridge_status ridge_stream_create(ridge_device* device, ridge_stream** stream) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(device, "device"));
    RIDGE_TRY(needed(stream, "stream"));
    auto made = std::make_unique<ridge_stream>();
    made->shared = device->shared;
    RIDGE_ASSIGN(made->stream, device->shared->device->create_stream());
    *stream = made.release();
    return {};
  });
}

void ridge_stream_destroy(ridge_stream* stream) {
  delete stream;
}
