#include "lab/call_reader.h"

#include "ops/kv_slots.h"

namespace ridge {

namespace {

/// `wanted` says which operands are copied; where the host does not see the device's memory all of them are.
template <class Wanted>
Result<HostArgs> host_args(const StepPlan& plan, size_t index, const Wanted& wanted) {
  const AnyCall& call = plan.calls()[index].call;
  HostArgs out;
  out.args = call.op->clone_args(call.op->args_of_now(call.args.get()).get());
  const auto& infos = call.op->operands();
  for (size_t i = 0; i < infos.size(); ++i) {
    Tensor& t = call.op->operand(out.args.get(), static_cast<int>(i));
    if (!t || t.elements() == 0 || (plan.host_visible() && !wanted(infos[i]))) continue;
    RIDGE_ASSIGN(Buffer copy, plan.read(t));
    t.data = copy.data();
    out.memory.push_back(std::move(copy));
  }
  return out;
}

Tensor operand_named(const AnyOperator& op, void* args, const std::string& name) {
  const auto& infos = op.operands();
  for (size_t i = 0; i < infos.size(); ++i)
    if (infos[i].name == name) return op.operand(args, static_cast<int>(i));
  return {};
}

/// Elements of [rows, columns] codes times the scales of blocks of 32.
std::vector<float> decoded_rows(const Tensor& q, const Tensor& scale) {
  std::vector<float> values;
  for (int64_t t = 0; t < q.dim(0); ++t)
    for (int64_t i = 0; i < q.dim(1); ++i)
      values.push_back(static_cast<float>(q.f64(t, i) * scale.f64(t, i / 32)));
  return values;
}

/// The rows of a paged cache that the tokens' slots name.
std::vector<float> written_rows(const Tensor& pages, const Tensor& scale, const Tensor& slots) {
  std::vector<float> values;
  for_each_slot(slots, pages, [&](int64_t, int64_t page, int64_t offset) {
    for (int64_t head = 0; head < pages.dim(1); ++head)
      for (int64_t i = 0; i < pages.dim(3); ++i)
        values.push_back(static_cast<float>(pages.f64(page, head, offset, i) *
                                            (scale ? scale.f64(page, head, offset) : 1)));
  });
  return values;
}

std::vector<float> all_values(const Tensor& t) {
  const auto dim = [&](int d) { return d < t.rank() ? t.dim(d) : 1; };
  std::vector<float> values;
  for (int64_t i = 0; i < dim(0); ++i)
    for (int64_t j = 0; j < dim(1); ++j)
      for (int64_t k = 0; k < dim(2); ++k)
        for (int64_t l = 0; l < dim(3); ++l) values.push_back(static_cast<float>(t.f64(i, j, k, l)));
  return values;
}

}  // namespace

Result<HostArgs> args_before(const StepPlan& plan, size_t call) {
  return host_args(plan, call, [](const OperandInfo& o) {
    if (o.role == Role::kOut || o.data_class == DataClass::kWeights) return false;
    return o.role != Role::kIn || o.data_class != DataClass::kKv;
  });
}

Result<HostArgs> args_after(const StepPlan& plan, size_t call) {
  return host_args(plan, call, [](const OperandInfo&) { return false; });
}

std::vector<FloatOutput> float_outputs(const AnyOperator& op, void* args) {
  std::vector<FloatOutput> out;
  const auto& infos = op.operands();
  for (size_t i = 0; i < infos.size(); ++i) {
    const Tensor t = op.operand(args, static_cast<int>(i));
    const std::string name = infos[i].name;
    if (!t || infos[i].role == Role::kIn || is_index(t.dtype) || infos[i].data_class == DataClass::kScales)
      continue;
    if (infos[i].data_class == DataClass::kKv)
      out.push_back({name, written_rows(t, operand_named(op, args, name.substr(0, 1) + "_scale"),
                                        operand_named(op, args, "slots"))});
    else if (t.dtype == kI8)
      out.push_back({name, decoded_rows(t, operand_named(op, args, "scale"))});
    else
      out.push_back({name, all_values(t)});
  }
  return out;
}

}  // namespace ridge
