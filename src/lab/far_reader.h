#pragma once
// FarReader: how fast memory gives a step its weights at this moment, with nothing computed, how fast the
// processor then computes, with nothing read, and how fast it reads what lies in a core's own cache.

#include <functional>
#include <memory>
#include <vector>

#include "plan/step_plan.h"
#include "runtime/device.h"

namespace ridge {

/// One reading of the weights and scales that the calls of a plan read, from where they lie and in their
/// order: by call, what a thread took for its share, on average and spread over all threads of the device, in
/// microseconds. By call, so that a thread that loses its core for a moment spoils one figure and not the
/// reading: medians over readings say what memory gave.
struct FarReading {
  int64_t bytes = 0;              // of all calls
  std::vector<double> stream_us;  // all calls in one go
  std::vector<double> piece_us;   // the threads meet after each call; meetings aside
  // Of all threads, a second; 0: not taken.
  double flops = 0;        // operations: multiply-adds in f32 on registers alone
  double near_read = 0;    // bytes, of a set in each core's first cache
  bool disturbed = false;  // a thread lost its core to another program meanwhile: no property of the machine
};

/// Takes a reading; it leaves the caches as a step leaves them.
using FarReader = std::function<FarReading(const StepPlan& plan)>;

/// Reads with the threads of `device` and as many of them a call as kernels take for so many bytes. Empty for
/// a device whose memory the host cannot read for it. Use it from the thread that runs the device's steps.
FarReader far_reader(Device& device);

}  // namespace ridge
