#include "ops/dispatch.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "account/recorder.h"
#include "base/stop.h"

namespace ridge {

/// The call, by its operator's name to profilers and checks.
static Status run_named(Stream& stream, const AnyOperator& op, const Selection& selection, const void* args) {
  stream.open_call(op.name(), op.name());
  Status done = op.run(selection, stream, args);
  stream.close_call();
  return done;
}

Status run_eager(Stream& stream, const AnyOperator& op, const void* args) {
  RIDGE_TRY(op.check(args));
  RIDGE_ASSIGN(const Selection selection, op.select(stream.target(), args));
  if (selection.workspace_bytes > stream.workspace_bytes())
    return invalid_argument(op.name(), ": needs ", selection.workspace_bytes,
                            " bytes of workspace, the stream has ", stream.workspace_bytes());
  if (stream.recorder() == nullptr) {
    RIDGE_TRY(run_named(stream, op, selection, args));
    return check_stop();
  }
  CallRecord record;
  record.op = op.name(), record.kernel = op.kernel_name(selection), record.label = op.name();
  record.shape = op.shape(args), record.cost = op.cost(selection, args);
  record.begin_ns = now_ns();
  const Status status = run_named(stream, op, selection, args);
  record.end_ns = now_ns();
  stream.recorder()->record(std::move(record));
  RIDGE_TRY(status);
  return check_stop();
}

[[noreturn]] static void no_such(const AnyCall& call, std::string_view name) {
  std::fprintf(stderr, "ridge: a fuse function asks %s for '%.*s', which it has not\n", call.op->name(),
               static_cast<int>(name.size()), name.data());
  std::abort();
}
Tensor operand_of(const AnyCall& call, std::string_view name) {
  const auto& infos = call.op->operands();
  for (size_t i = 0; i < infos.size(); ++i)
    if (name == infos[i].name) return call.op->operand(call.args.get(), static_cast<int>(i));
  no_such(call, name);
}
double param_of(const AnyCall& call, std::string_view name) {
  const auto value = call.op->get_param(call.args.get(), name);
  if (!value.ok()) no_such(call, name);
  return *value;
}
Count count_of(const AnyCall& call, std::string_view name) {
  const auto count = call.op->count(call.args.get(), name);
  if (!count) no_such(call, name);
  return *count;
}

std::vector<AnyOperator*> fused_operators(const std::string& backend) {
  std::vector<AnyOperator*> fused;
  for (AnyOperator* op : operators()) {
    const auto kernels = op->kernels();
    if (!op->replaces().empty() && std::any_of(kernels.begin(), kernels.end(),
                                               [&](const KernelInfo& k) { return k.backend == backend; }))
      fused.push_back(op);
  }
  return fused;
}

AnyOperator* find_operator(std::string_view name) {
  for (AnyOperator* op : operators())
    if (name == op->name()) return op;
  return nullptr;
}

}  // namespace ridge
