#pragma once
// Machine: the ceilings measured here (`ridge probe`), with where they come from.

#include <array>
#include <string>
#include <vector>

#include "account/cost.h"
#include "base/status.h"
#include "machine/pace.h"

namespace ridge {

/// Bandwidth over a working set of `bytes` (of all threads together), GB/s = 10^9 bytes a second.
struct BandwidthPoint {
  int64_t bytes = 0;
  double read = 0, write = 0, copy = 0;
};

/// Bandwidth of reading far memory in pieces: `bytes` between two meetings of the threads.
struct PiecePoint {
  int64_t bytes = 0;
  double read = 0;
};

/// What one thread count reaches.
struct ThreadCeilings {
  int threads = 0;
  std::vector<BandwidthPoint> curve;     // ascending bytes; the last is main memory
  std::vector<PiecePoint> pieces;        // ascending bytes
  std::array<double, kEngines> flops{};  // FLOP/s (int8: operations a second); 0: the set has no such unit
  double barrier_us = 0;                 // waking the team and meeting again
};

/// A figure beside the ceilings: what a launch costs, the way to the host.
inline constexpr const char* kLaunchMeasure = "launch in a graph, dependent";
struct OtherMeasure {
  std::string what;
  double value = 0;
  std::string unit;
};

struct Machine {
  // Provenance
  std::string cpu, isa, build, compiler, commit, date, governor;
  int cores = 0;
  double load = 0;                         // processes that wanted a core, mean of the minute before
  double pressure = -1;                    // share of the probe's time with a thread waiting; -1: unknown
  double seconds = 0;                      // the probe took
  std::vector<ThreadCeilings> by_threads;  // ascending threads
  std::vector<KernelPace> kernels;
  std::vector<OtherMeasure> others;

  /// A launch that does nothing, in a graph and started early, in microseconds; 0 where nothing is launched.
  double launch_us() const;
  /// The ceilings of `threads` (the nearest measured count below it, else the smallest).
  const ThreadCeilings& at(int threads) const;
};

/// Read bandwidth in bytes a second for data whose next use comes after `bytes` of other data: the level that
/// holds so much. Between measured sizes, linear in log(bytes).
double read_bandwidth(const ThreadCeilings& c, int64_t bytes);
double write_bandwidth(const ThreadCeilings& c, int64_t bytes);
/// Read bandwidth of main memory for a call that reads `bytes` of it between two meetings; at most the
/// curve's.
double piece_bandwidth(const ThreadCeilings& c, int64_t bytes);

/// What a machine file must match to be used: this processor and this build of the kernels.
struct MachineIdentity {
  std::string cpu, isa, build;
};
MachineIdentity this_machine(const std::string& isa);
/// The same for a device that is not the processor: `cpu` and `isa` then name device and backend.
MachineIdentity this_machine(const std::string& backend, const std::string& device);

/// Errors: kNotFound; kCorrupt naming the field; kDeclined for another processor, instruction set or build,
/// or a file as another version wrote it: run probe again.
Result<Machine> load_machine(const std::string& path, const MachineIdentity& expected);
Status save_machine(const std::string& path, const Machine& machine);
/// $RIDGE_MACHINE, else machine-<isa>.json in user_folder(); empty where there is none.
std::string default_machine_path(const std::string& isa);

}  // namespace ridge
