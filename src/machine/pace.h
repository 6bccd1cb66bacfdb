#pragma once
// Pace: how fast a kernel is by itself, without waiting for memory or for other threads.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "account/cost.h"
#include "base/status.h"

namespace ridge {

struct Machine;

/// One measured call: `work` as pace_work() counts it, and the microseconds that it took.
struct PacePoint {
  double work = 0, us = 0;
};

/// A kernel on one thread, with every operand in that core's own caches: what its instructions allow, those
/// that unpack, convert, transpose and find addresses included.
struct KernelPace {
  std::string op, kernel, formats;  // "linear", "linear_int8_rows16", "i8 q4_1"
  std::vector<int64_t> dims;        // AnyOperator::pace_dims
  std::vector<PacePoint> points;    // ascending work
  /// What a metered call takes more when other data has gone through the core's caches since the last one:
  /// its instructions come from further away, nothing predicts its branches. Operands are near as before.
  double start_us = 0;
  /// With weights or KV beyond the caches, reading them and the kernel's own time overlap: the share of the
  /// shorter of the two that is not hidden behind the longer. 0 also where reading is short beside the
  /// kernel.
  double exposed = 0;
};

struct PaceQuery {
  std::string_view op, kernel, formats;  // kernel "": whichever was measured with these formats
  std::vector<int64_t> dims;
};

/// What a kernel's time goes with: useful FLOPs; the bytes of operators that count none.
double pace_work(const Cost& cost);

/// Has points (ascending) measured once more, `tries` times at most, each kept where it came out shorter,
/// until every two neighbours make a line that a kernel can have: its fixed part neither below nothing nor a
/// good part of the longer call. Calls of other amounts of work are priced by that line, of seventy times the
/// work too, and something else that ran during one point would turn it. again(i): microseconds of point i
/// now. Errors: its own.
Status settle_points(std::vector<PacePoint>* points, int tries,
                     const std::function<Result<double>(size_t)>& again);

/// Microseconds that one call of `work` takes `threads` threads at the kernel's own pace; 0: not measured.
/// Of the measured dims the nearest (by ratios) stand for the others: a call of dims k times as large is k of
/// the measured ones. Between two amounts of work, and beyond
/// them, time is a line: a fixed part and one that grows; never less than nothing for the fixed part. Threads
/// with caches of their own share the work evenly, and are as fast as the machine's arithmetic says they are
/// together.
double kernel_us(const Machine& machine, const PaceQuery& query, double work, int threads);

/// What was measured of such calls beside their points, at the nearest dims; null: nothing.
const KernelPace* nearest_pace(const Machine& machine, const PaceQuery& query);

}  // namespace ridge
