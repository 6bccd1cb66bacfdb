#pragma once
// Recorder: what an account sees of each operator call.

#include <chrono>
#include <string>

#include "account/cost.h"

namespace ridge {

/// Nanoseconds of the monotonic clock; the one time origin of account, timeline and trace.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct CallRecord {
  const char* op = "";      // "linear"
  const char* kernel = "";  // "linear_rows16_avx512"
  std::string label;        // the place in the model: "layer 3 gate_up"
  std::string shape;        // "1x1536x576": the operator's own key of a row
  Cost cost;
  int64_t begin_ns = 0, end_ns = 0;
};

/// Attached to a stream, receives every call of it, in order, on the stream's thread.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(CallRecord call) = 0;
};

}  // namespace ridge
