// ridge bench --op on a device apart from the host.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "account/recorder.h"
#include "base/checked.h"
#include "base/stop.h"
#include "bench_parts.h"
#include "lab/launch_json.h"

namespace ridge::app {

namespace {

constexpr int64_t kRotatedBytes = 220'000'000;  // more than any cache of a GPU keeps
constexpr size_t kMostCopies = 8192;            // of calls so small that as many are less
constexpr int64_t kAlignment = 256;

/// Copies of one call: the same values, memory of their own.
struct Copies {
  std::vector<AnyCall> calls;
  Buffer memory, workspace;
  Selection selection;
  int64_t bytes = 0;  // of operands, of all copies
};

Result<Copies> copies_of(Device& device, AnyOperator& op, const AnyCall& host) {
  Copies c;
  int64_t each = 0;
  std::vector<int64_t> at;
  const auto operand = [&](const AnyCall& call, size_t i) -> Tensor& {
    return op.operand(call.args.get(), static_cast<int>(i));
  };
  const size_t operands = op.operands().size();
  for (size_t i = 0; i < operands; ++i) {
    at.push_back(each);
    if (operand(host, i)) each += round_up(operand(host, i).bytes(), kAlignment);
  }
  const auto count = static_cast<size_t>(
      std::clamp<int64_t>(kRotatedBytes / std::max<int64_t>(1, each) + 1, 2, kMostCopies));
  RIDGE_ASSIGN(c.memory, device.allocate(each * static_cast<int64_t>(count)));
  c.bytes = each * static_cast<int64_t>(count);
  for (size_t copy = 0; copy < count; ++copy) {
    RIDGE_TRY(check_stop());
    AnyCall call{host.op, op.clone_args(host.args.get()), host.label};
    for (size_t i = 0; i < operands; ++i) {
      Tensor& t = operand(call, i);
      if (!t) continue;
      void* const there = c.memory.begin() + static_cast<int64_t>(copy) * each + at[i];
      RIDGE_TRY(device.upload(there, operand(host, i).data, t.bytes()));
      t.data = there;
    }
    c.calls.push_back(std::move(call));
  }
  RIDGE_TRY(op.check(c.calls[0].args.get()));
  RIDGE_ASSIGN(c.selection, op.select(device.target(), c.calls[0].args.get()));
  RIDGE_ASSIGN(c.workspace, device.allocate(c.selection.workspace_bytes));
  return c;
}

Status queue(AnyOperator& op, const Copies& c, Stream& stream) {
  for (const AnyCall& call : c.calls) RIDGE_TRY(op.run(c.selection, stream, call.args.get()));
  return {};
}

}  // namespace

Result<nlohmann::ordered_json> bench_device_call(Device& device, const MachineOf& machine_of, AnyOperator& op,
                                                 const std::vector<int64_t>& shape,
                                                 const std::map<std::string, DType>& dtypes, double seconds) {
  std::vector<Buffer> storage;
  RIDGE_ASSIGN(const AnyCall host, op.example(device.target(), shape, dtypes, 1, &storage));
  RIDGE_TRY(op.select(device.target(), host.args.get()).status());
  RIDGE_ASSIGN(const Copies copies, copies_of(device, op, host));
  RIDGE_ASSIGN(const Machine* const machine, machine_of());
  RIDGE_ASSIGN(const auto stream, device.create_stream());
  stream->set_workspace(copies.workspace.data(), copies.workspace.bytes());
  if (!stream->records_graphs() || !stream->has_stamps())
    return declined("bench --op times calls by a device's own clock in a graph, which ",
                    device.target().backend, " has not");
  // What kernels set up once must not happen while calls are recorded.
  std::vector<KernelLaunch> launches;
  stream->note_launches(&launches);
  const Status first = op.run(copies.selection, *stream, copies.calls[0].args.get());
  stream->note_launches(nullptr);
  RIDGE_TRY(first);
  RIDGE_TRY(stream->prepare_stamps(2));
  RIDGE_TRY(stream->synchronize());
  RIDGE_TRY(stream->begin_recording());
  Status queued = stream->stamp_now(0);
  if (queued.ok()) queued = queue(op, copies, *stream);
  if (queued.ok()) queued = stream->stamp_now(1);
  auto graph = stream->end_recording();
  RIDGE_TRY(queued);
  RIDGE_TRY(graph.status());
  std::vector<double> us;
  const int64_t stop = now_ns() + static_cast<int64_t>(seconds * 1e9);
  for (int round = 0; round < 7 || now_ns() < stop; ++round) {
    if (interrupted()) return interruption();
    RIDGE_TRY(stream->prepare_stamps(2));
    RIDGE_TRY(stream->launch(**graph));
    std::vector<int64_t> stamps;
    RIDGE_TRY(stream->read_stamps(&stamps));
    // The first rounds touch memory and raise the clocks.
    if (round >= 2)
      us.push_back(static_cast<double>(stamps[1] - stamps[0]) / 1e3 /
                   static_cast<double>(copies.calls.size()));
  }
  auto row = operator_row(op, shape, copies.calls[0], copies.selection, us, copies.bytes, machine->at(1));
  row["rotated_bytes"] = copies.bytes, row["copies"] = copies.calls.size();
  row["launches"] = launches_json(launches);
  return row;
}

}  // namespace ridge::app
