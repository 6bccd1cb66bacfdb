// ridge bench --op on a CPU.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "account/recorder.h"
#include "base/checked.h"
#include "base/stop.h"
#include "bench_copies.h"
#include "bench_parts.h"

namespace ridge::app {

namespace {

constexpr int64_t kHostRotated = 200 << 20;  // that calls read and write, all together: more than any cache
constexpr int64_t kHostHeld = 512 << 20;     // of operands, for calls that touch a part of theirs
constexpr int64_t kHostMostCopies = 256;

/// One call, and copies of it.
struct HostCopies {
  std::vector<AnyCall> calls;
  std::vector<Buffer> example;  // operands of the first
  CallCopies others;
  Buffer workspace;
  Selection selection;
  int64_t bytes = 0;  // that all calls read and write
};

/// That only the reference takes the call, which is there to be right and not to be timed.
Status no_kernel(const AnyOperator& op, const Selection& selection) {
  std::string why;
  for (const std::string& d : selection.declines) why += text(why.empty() ? "" : "; ", d);
  if (why.empty()) why = why_no_kernel(op, "cpu");
  return declined(op.name(), ": ", why.empty() ? "no kernel of this instruction set" : why,
                  ": --reference times the reference");
}

/// So many that all together exceed every cache, within what may be held.
Result<HostCopies> host_copies_of(CpuDevice& device, AnyOperator& op, const std::vector<int64_t>& shape,
                                  const std::map<std::string, DType>& dtypes, bool reference) {
  HostCopies c;
  RIDGE_ASSIGN(AnyCall call, op.example(device.target(), shape, dtypes, 1, &c.example));
  RIDGE_TRY(check_stop());
  RIDGE_TRY(op.check(call.args.get()));
  RIDGE_ASSIGN(c.selection, op.select(device.target(), call.args.get()));
  if (c.selection.kernel < 0 && !reference) return no_kernel(op, c.selection);
  const int64_t call_bytes = std::max<int64_t>(1, op.cost(c.selection, call.args.get()).total_bytes());
  const int64_t wanted = std::min(ceil_div(kHostRotated, call_bytes), kHostMostCopies) - 1,
                most = std::max<int64_t>(1, kHostHeld / std::max<int64_t>(1, copy_bytes(call)));
  RIDGE_ASSIGN(c.others, copies_of(device, call, std::min(wanted, most)));
  c.calls = c.others.calls;
  c.calls.insert(c.calls.begin(), std::move(call));
  c.bytes = call_bytes * static_cast<int64_t>(c.calls.size());
  RIDGE_ASSIGN(c.workspace, Buffer::allocate(c.selection.workspace_bytes));
  return c;
}

}  // namespace

Result<nlohmann::ordered_json> bench_call(CpuDevice& device, const MachineOf& machine_of, AnyOperator& op,
                                          const std::vector<int64_t>& shape,
                                          const std::map<std::string, DType>& dtypes, double seconds,
                                          bool reference) {
  RIDGE_ASSIGN(const HostCopies copies, host_copies_of(device, op, shape, dtypes, reference));
  RIDGE_ASSIGN(const Machine* const machine, machine_of());
  RIDGE_ASSIGN(const auto stream, device.create_stream());
  stream->set_workspace(copies.workspace.data(), copies.workspace.bytes());
  const size_t count = copies.calls.size();
  const auto allowed = static_cast<int64_t>(seconds * 1e9);
  std::vector<double> us;
  int64_t begin = now_ns(), stop = begin + allowed;
  bool warm = false;  // after a pass over all copies, or as long as may be timed
  for (size_t i = 0; !warm || us.size() < 3 || begin < stop; ++i) {
    RIDGE_TRY(op.run(copies.selection, *stream, copies.calls[i % count].args.get()));
    RIDGE_TRY(check_stop());
    const int64_t end = now_ns();
    if (warm) us.push_back(double(end - begin) / 1e3);
    if (!warm && (i + 1 >= count || end >= stop)) warm = true, stop = end + allowed;
    begin = now_ns();
  }
  return operator_row(op, shape, copies.calls[0], copies.selection, us, copies.bytes,
                      machine->at(device.team().threads()));
}

}  // namespace ridge::app
