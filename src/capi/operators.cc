// What operators there are, and what they take.

#include "capi/device.h"
#include "capi/tensors.h"

namespace ridge::capi {

Result<AnyOperator*> operator_named(const char* name) {
  RIDGE_TRY(needed(name, "op"));
  if (AnyOperator* op = find_operator(name)) return op;
  std::string known;
  for (const AnyOperator* op : operators()) known += text(known.empty() ? "" : ", ", op->name());
  return not_found("no operator is named ", printable(name), "; there are ", known);
}

namespace {

static_assert(static_cast<int>(Role::kInOut) == RIDGE_IN_OUT && static_cast<int>(Role::kOut) == RIDGE_OUT);
static_assert(static_cast<int>(DataClass::kIndices) == RIDGE_INDICES && kDataClasses == RIDGE_DATA_CLASSES);

Status bad_index(size_t index, const AnyOperator& op, size_t count, const char* what) {
  return invalid_argument("index is ", index, ", ", op.name(), " has ", count, " ", what);
}

/// Names of scalar arguments, kept for those who hold pointers to them.
const std::vector<std::string>& params_of(const AnyOperator& op) {
  static const auto* const all = [] {
    auto* names = new std::map<const AnyOperator*, std::vector<std::string>>;
    for (const AnyOperator* each : operators()) (*names)[each] = each->params();
    return names;
  }();
  return all->at(&op);
}

}  // namespace
}  // namespace ridge::capi

using namespace ridge;
using namespace ridge::capi;

size_t ridge_operator_count(void) {
  size_t count = 0;
  guarded([&]() -> Outcome {
    count = operators().size();
    return {};
  });
  return count;
}

const char* ridge_operator_name(size_t index) {
  const char* name = nullptr;
  guarded([&]() -> Outcome {
    if (index < operators().size()) name = operators()[index]->name();
    return {};
  });
  return name;
}

ridge_status ridge_operator_describe(const char* op, ridge_operator_info* info) {
  return guarded([&]() -> Outcome {
    RIDGE_ASSIGN(const AnyOperator* found, operator_named(op));
    RIDGE_TRY(check_output(info, "info"));
    ridge_operator_info i = RIDGE_OPERATOR_INFO_INIT;
    i.operands = found->operands().size(), i.params = params_of(*found).size();
    write_struct(i, info);
    return {};
  });
}

ridge_status ridge_operator_operand(const char* op, size_t index, ridge_operand_info* info) {
  return guarded([&]() -> Outcome {
    RIDGE_ASSIGN(const AnyOperator* found, operator_named(op));
    RIDGE_TRY(check_output(info, "info"));
    if (index >= found->operands().size())
      return bad_index(index, *found, found->operands().size(), "operands");
    const OperandInfo& o = found->operands()[index];
    ridge_operand_info i = RIDGE_OPERAND_INFO_INIT;
    i.name = o.name, i.dims = o.dims, i.same_as = o.same_as;
    for (const DType d : o.dtypes) i.dtypes |= uint64_t{1} << static_cast<int>(d);
    // To a caller a buffer that is written in parts goes in and comes out.
    i.role = o.role == Role::kInto ? RIDGE_IN_OUT : static_cast<int32_t>(o.role);
    i.data_class = static_cast<int32_t>(o.data_class);
    i.optional = o.optional ? 1 : 0;
    write_struct(i, info);
    return {};
  });
}

ridge_status ridge_operator_param(const char* op, size_t index, const char** name) {
  return guarded([&]() -> Outcome {
    RIDGE_ASSIGN(const AnyOperator* found, operator_named(op));
    RIDGE_TRY(needed(name, "name"));
    const std::vector<std::string>& params = params_of(*found);
    if (index >= params.size()) return bad_index(index, *found, params.size(), "parameters");
    *name = params[index].c_str();
    return {};
  });
}
