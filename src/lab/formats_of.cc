#include "lab/formats_of.h"

#include "ops/binding.h"

namespace ridge {

std::string formats_of(const AnyCall& call) {
  std::string out;
  const auto& infos = call.op->operands();
  for (size_t i = 0; i < infos.size(); ++i) {
    const Tensor& t = call.op->operand(call.args.get(), static_cast<int>(i));
    if (!t || infos[i].role == Role::kOut) continue;
    const bool stored = infos[i].data_class == DataClass::kWeights || infos[i].data_class == DataClass::kKv;
    if (stored || t.dtype == kI8) out += text(out.empty() ? "" : " ", dtype_name(t.dtype));
  }
  return out;
}

std::vector<int64_t> linear_case(const AnyOperator& linear, int64_t tokens, int64_t out, int64_t in) {
  std::vector<int64_t> values;
  for (const std::string& name : dim_words(linear.case_dims()))
    values.push_back(name == "tokens" ? tokens : name == "out" ? out : name == "in" ? in : (in + 31) / 32);
  return values;
}

}  // namespace ridge
