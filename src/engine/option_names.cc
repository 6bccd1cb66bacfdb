#include "engine/option_names.h"

#include "formats/tokenizer_split.h"
#include "ops/any_operator.h"

namespace ridge {

namespace {

Result<DType> kv_format(std::string_view name, std::string_view prefix) {
  if (name == "f32") return kF32;
  if (name == "f16") return kF16;
  if (name == "bf16") return kBF16;
  if (name == "q8") return kI8;
  return invalid_argument(prefix, "kv is ", printable(name), ": use f32, f16, bf16 or q8");
}

}  // namespace

const char* kv_name(DType type) {
  return type == kI8 ? "q8" : dtype_name(type);
}

Status apply_names(const NamedOptions& names, std::string_view prefix, SessionOptions* options) {
  if (!names.isa.empty()) {
    RIDGE_ASSIGN(options->device.cpu.isa, parse_isa(names.isa));
  }
  if (!names.assume_pre.empty() && !tokenizer::split_by_name(names.assume_pre))
    return invalid_argument(prefix, prefix == "--" ? "assume-pre" : "assume_pre", " is ",
                            printable(names.assume_pre), ": use ", tokenizer::split_names());
  options->assume_pre = names.assume_pre;
  EngineOptions& e = options->engine;
  const bool exact = names.activations == "f32";
  // Codes of 8 bits are a CPU's way to speed; a GPU's kernels take floats.
  const bool by_default = names.activations.empty(), cpu = options->device.backend == "cpu";
  e.formats.activations = by_default && cpu ? ActivationFormat::kInt8 : ActivationFormat::kF32;
  bool known = by_default;
  for (const ActivationFormat f : {ActivationFormat::kF32, ActivationFormat::kBf16, ActivationFormat::kInt8})
    if (names.activations == activation_format_name(f)) e.formats.activations = f, known = true;
  if (!known)
    return invalid_argument(prefix, "activations is ", printable(names.activations),
                            ": use int8, bf16 or f32");
  RIDGE_ASSIGN(e.kv.k_type, kv_format(!names.kv.empty() ? names.kv : exact ? "f32" : "f16", prefix));
  e.kv.v_type = e.kv.k_type;
  std::set<std::string> fused;
  for (const AnyOperator* op : fused_operators(options->device.backend)) fused.insert(op->name());
  e.plan.fusions = fused;
  for (const std::string& name : names.without_fusions) {
    if (name == "all") {
      e.plan.fusions.clear();
    } else if (e.plan.fusions.erase(name) == 0 && fused.count(name) == 0) {
      std::string list;
      for (const std::string& f : fused) list += f + ", ";
      return invalid_argument("a fusion to leave apart is ", printable(name), ": use ", list, "or all");
    }
  }
  return {};
}

}  // namespace ridge
