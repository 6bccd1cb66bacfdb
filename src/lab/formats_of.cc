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

}  // namespace ridge
