#pragma once
// The parts of 'ridge bench' that have files of their own.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "verbs.h"

namespace ridge::app {

/// 'ridge bench fusion MODEL': a subcommand of `bench`.
Command add_bench_fusion(CLI::App& bench);

/// The ceilings that calls are judged by, measured when they are first asked for.
using MachineOf = std::function<Result<const Machine*>()>;

/// Times a call on a CPU: it and copies of it with operands of their own, so many that together they exceed
/// every cache, though of at most 512 MB (or one copy) and 256. A row of `bench --op`. `machine_of` is asked
/// once the call is known to be one. Errors: kDeclined where only the reference takes the call and
/// `reference` is not set; those of the call.
Result<nlohmann::ordered_json> bench_call(CpuDevice& device, const MachineOf& machine_of, AnyOperator& op,
                                          const std::vector<int64_t>& shape,
                                          const std::map<std::string, DType>& dtypes, double seconds,
                                          bool reference);

/// Times a call on a device apart from the host: copies of it, in memory of their own of more than 200 MB
/// together, one after the other in a recorded graph, with random operands. A row of `bench --op`, with
/// `launches` of one call and `rotated_bytes`. Errors: kDeclined where no kernel takes the call, with the
/// reasons; those of the device.
Result<nlohmann::ordered_json> bench_device_call(Device& device, const MachineOf& machine_of, AnyOperator& op,
                                                 const std::vector<int64_t>& shape,
                                                 const std::map<std::string, DType>& dtypes, double seconds);

/// The row of one operator: rates, limit and attainment of a call that takes `us` (median; `least` the
/// shortest), its operands `reuse_bytes` apart from the last use.
nlohmann::ordered_json operator_row(const AnyOperator& op, const std::vector<int64_t>& shape,
                                    const AnyCall& call, const Selection& selection,
                                    const std::vector<double>& us, int64_t reuse_bytes,
                                    const ThreadCeilings& ceilings);

}  // namespace ridge::app
