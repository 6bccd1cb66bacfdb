// ridge bench --op on a device apart from the host.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "account/recorder.h"
#include "bench_copies.h"
#include "bench_parts.h"
#include "lab/launch_json.h"

namespace ridge::app {

namespace {

constexpr int64_t kRotatedBytes = 220'000'000;  // more than any cache of a GPU keeps
constexpr int64_t kMostCopies = 8192;           // of calls so small that as many are less

/// As many copies of a call as exceed the caches, ready to run.
struct Prepared {
  CallCopies copies;
  Buffer workspace;
  Selection selection;
};

Result<Prepared> prepared(Device& device, AnyOperator& op, const AnyCall& host) {
  Prepared p;
  const int64_t count =
      std::clamp<int64_t>(kRotatedBytes / std::max<int64_t>(1, copy_bytes(host)) + 1, 2, kMostCopies);
  RIDGE_ASSIGN(p.copies, copies_of(device, host, count));
  const void* const first = p.copies.calls[0].args.get();
  RIDGE_TRY(op.check(first));
  RIDGE_ASSIGN(p.selection, op.select(device.target(), first));
  RIDGE_ASSIGN(p.workspace, device.allocate(p.selection.workspace_bytes));
  return p;
}

Status queue(AnyOperator& op, const Prepared& p, Stream& stream) {
  for (const AnyCall& call : p.copies.calls) RIDGE_TRY(op.run(p.selection, stream, call.args.get()));
  return {};
}

}  // namespace

Result<nlohmann::ordered_json> bench_device_call(Device& device, const MachineOf& machine_of, AnyOperator& op,
                                                 const std::vector<int64_t>& shape,
                                                 const std::map<std::string, DType>& dtypes, double seconds) {
  std::vector<Buffer> storage;
  RIDGE_ASSIGN(const AnyCall host, op.example(device.target(), shape, dtypes, 1, &storage));
  RIDGE_TRY(op.select(device.target(), host.args.get()).status());
  RIDGE_ASSIGN(const Prepared p, prepared(device, op, host));
  const std::vector<AnyCall>& calls = p.copies.calls;
  RIDGE_ASSIGN(const Machine* const machine, machine_of());
  RIDGE_ASSIGN(const auto stream, device.create_stream());
  stream->set_workspace(p.workspace.data(), p.workspace.bytes());
  if (!stream->records_graphs() || !stream->has_stamps())
    return declined("bench --op times calls by a device's own clock in a graph, which ",
                    device.target().backend, " has not");
  // What kernels set up once must not happen while calls are recorded.
  std::vector<KernelLaunch> launches;
  stream->note_launches(&launches);
  const Status first = op.run(p.selection, *stream, calls[0].args.get());
  stream->note_launches(nullptr);
  RIDGE_TRY(first);
  RIDGE_TRY(stream->prepare_stamps(2));
  RIDGE_TRY(stream->synchronize());
  RIDGE_TRY(stream->begin_recording());
  Status queued = stream->stamp_now(0);
  if (queued.ok()) queued = queue(op, p, *stream);
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
      us.push_back(static_cast<double>(stamps[1] - stamps[0]) / 1e3 / static_cast<double>(calls.size()));
  }
  auto row = operator_row(op, shape, calls[0], p.selection, us, p.copies.memory.bytes(), machine->at(1));
  row["rotated_bytes"] = p.copies.memory.bytes(), row["copies"] = calls.size();
  row["launches"] = launches_json(launches);
  return row;
}

}  // namespace ridge::app
