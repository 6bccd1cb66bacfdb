// One operator call over the caller's memory.

#include "capi/device.h"
#include "capi/tensors.h"
#include "ops/binding.h"
#include "ops/dispatch.h"

using namespace ridge;
using namespace ridge::capi;

namespace {

/// The index of an operand by name. Errors: none of that name, naming those that there are.
Result<size_t> operand_index(const ridge_call& call, const char* operand) {
  RIDGE_TRY(needed(operand, "operand"));
  const auto& infos = call.op->operands();
  for (size_t i = 0; i < infos.size(); ++i)
    if (std::string_view(infos[i].name) == operand) return i;
  std::string known;
  for (const OperandInfo& o : infos) known += text(known.empty() ? "" : ", ", o.name);
  return invalid_argument(call.op->name(), " has no operand ", printable(operand), "; it has ", known);
}

/// Several elements of an output at one address would be written in no certain order.
Status check_written(const OperandInfo& o, const Tensor& t) {
  if (o.role == kIn || !t) return {};
  for (int i = 0; i < t.rank(); ++i)
    if (t.dim(i) > 1 && t.stride(i) == 0 && t.elements() > 0)
      return invalid_argument("operand ", o.name, ": stride ", i, " is 0 over ", t.dim(i),
                              " elements that are written");
  return {};
}

/// Replaces an operand by what `make` views.
template <class Make>
Outcome set_operand(ridge_call* call, const char* operand, const Make& make) {
  RIDGE_TRY(needed(call, "call"));
  RIDGE_ASSIGN(const size_t index, operand_index(*call, operand));
  const OperandInfo& info = call->op->operands()[index];
  Result<Tensor> made = make(info);
  if (!made.ok()) return made.status().within(call->op->name());
  Status written = check_written(info, *made);
  if (!written.ok()) return written.within(call->op->name());
  call->op->operand(call->args.get(), static_cast<int>(index)) = made.take();
  return {};
}

Result<Selection> checked_selection(const ridge_call& call) {
  RIDGE_TRY(call.op->check(call.args.get()));
  return call.op->select(call.shared->device->target(), call.args.get());
}

Status check_workspace(const void* workspace, int64_t bytes) {
  if (bytes < 0) return invalid_argument("workspace_bytes is ", bytes);
  if (bytes > 0) RIDGE_TRY(needed(workspace, "workspace"));
  return check_aligned(workspace, "workspace");
}

}  // namespace

ridge_status ridge_call_create(ridge_device* device, const char* op, ridge_call** call) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(device, "device"));
    RIDGE_TRY(needed(call, "call"));
    auto made = std::make_unique<ridge_call>();
    made->shared = device->shared;
    RIDGE_ASSIGN(made->op, operator_named(op));
    made->args = made->op->new_args();
    *call = made.release();
    return {};
  });
}

void ridge_call_destroy(ridge_call* call) {
  delete call;
}

ridge_status ridge_call_set_operand(ridge_call* call, const char* operand, const ridge_tensor* tensor) {
  return guarded([&]() -> Outcome {
    return set_operand(call, operand, [&](const OperandInfo& info) -> Result<Tensor> {
      if (tensor == nullptr) return Tensor();
      return tensor_of(*tensor, text("operand ", info.name).c_str());
    });
  });
}

ridge_status ridge_call_set_blocks(ridge_call* call, const char* operand, int32_t dtype,
                                   const ridge_tensor* bytes) {
  return guarded([&]() -> Outcome {
    return set_operand(call, operand, [&](const OperandInfo& info) -> Result<Tensor> {
      RIDGE_TRY(needed(bytes, "bytes"));
      RIDGE_ASSIGN(const DType known, dtype_of(dtype));
      return blocks_of(*bytes, known, text("operand ", info.name).c_str());
    });
  });
}

ridge_status ridge_call_set_packed(ridge_call* call, const char* operand, const char* packer, int32_t dtype,
                                   int64_t rows, int64_t columns, void* packed, int64_t packed_bytes) {
  return guarded([&]() -> Outcome {
    return set_operand(call, operand, [&](const OperandInfo& info) -> Result<Tensor> {
      RIDGE_ASSIGN(const AnyOperator* by, operator_named(packer));
      RIDGE_ASSIGN(const PackedForm form, packed_form(*call->shared, *by, dtype, rows, columns));
      if (info.data_class != kWeights || dim_words(info.dims).size() != 2)
        return invalid_argument("operand ", info.name, " is [", info.dims, "] of ",
                                data_class_name(info.data_class), ": packed are matrices of weights alone");
      if (form.layout == nullptr)
        return invalid_argument(by->name(), " does not pack ", dtype_name(form.dtype),
                                ": pass the rows as they are");
      if (packed_bytes < form.bytes)
        return invalid_argument("packed_bytes is ", packed_bytes, ", needs ", form.bytes);
      if (form.bytes > 0) RIDGE_TRY(needed(packed, "packed"));
      RIDGE_TRY(check_aligned(packed, "packed"));
      Tensor t(packed, form.dtype, form.shape);
      t.layout = form.layout;
      return t;
    });
  });
}

ridge_status ridge_call_set_param(ridge_call* call, const char* param, double value) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(call, "call"));
    RIDGE_TRY(needed(param, "param"));
    return call->op->set_param(call->args.get(), param, value);
  });
}

ridge_status ridge_call_get_param(const ridge_call* call, const char* param, double* value) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(call, "call"));
    RIDGE_TRY(needed(param, "param"));
    RIDGE_TRY(needed(value, "value"));
    RIDGE_ASSIGN(*value, call->op->get_param(call->args.get(), param));
    return {};
  });
}

ridge_status ridge_call_workspace(const ridge_call* call, int64_t* bytes) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(call, "call"));
    RIDGE_TRY(needed(bytes, "bytes"));
    RIDGE_ASSIGN(const Selection selection, checked_selection(*call));
    *bytes = selection.workspace_bytes;
    return {};
  });
}

ridge_status ridge_call_run(ridge_call* call, ridge_stream* stream, void* workspace,
                            int64_t workspace_bytes) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(call, "call"));
    RIDGE_TRY(needed(stream, "stream"));
    if (stream->shared != call->shared)
      return invalid_argument("stream is of another device than the ", call->op->name(), " call");
    RIDGE_TRY(check_workspace(workspace, workspace_bytes));
    const std::lock_guard lock(call->shared->running);
    stream->stream->set_workspace(workspace, workspace_bytes);
    const Status status = run_eager(*stream->stream, *call->op, call->args.get());
    stream->stream->set_workspace(nullptr, 0);
    return status;
  });
}

ridge_status ridge_call_cost(const ridge_call* call, ridge_cost* cost) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(call, "call"));
    RIDGE_TRY(check_output(cost, "cost"));
    RIDGE_ASSIGN(const Selection selection, checked_selection(*call));
    const Cost found = call->op->cost(selection, call->args.get());
    ridge_cost c = RIDGE_COST_INIT;
    c.kernel = call->op->kernel_name(selection);
    c.flops = found.total_flops(), c.executed_flops = found.total_executed();
    for (size_t i = 0; i < found.read_bytes.size(); ++i)
      c.read_bytes[i] = found.read_bytes[i], c.written_bytes[i] = found.written_bytes[i];
    write_struct(c, cost);
    return {};
  });
}
