// The C API as C++, and an operator by its typed function.
#include <ops/rms_norm/rms_norm.h>
#include <runtime/cpu/cpu_device.h>

#include <cmath>

#include "run.h"

static bool typed_call_is_right() {
  float x[4] = {1, -1, 1, -1}, w[4] = {1, 2, 3, 4}, y[4] = {};
  const auto device = ridge::CpuDevice::create({});
  if (!device.ok()) return false;
  const auto stream = (*device)->create_stream();
  ridge::RmsNormArgs args;
  args.y = ridge::Tensor(y, {1, 4}), args.x = ridge::Tensor(x, {1, 4}), args.w = ridge::Tensor(w, {4});
  args.epsilon = 0;
  if (!stream.ok() || !ridge::rms_norm(**stream, args).ok()) return false;
  for (int i = 0; i < 4; ++i)
    if (std::fabs(y[i] - x[i] * w[i]) > 1e-5f) return false;
  return true;
}

int main() {
  if (typed_call_is_right()) return run_rms_norm();
  std::printf("the typed call is wrong\n");
  return 1;
}
