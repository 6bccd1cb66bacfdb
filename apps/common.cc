#include "verbs.h"

namespace ridge::app {

void CommonOptions::add_to(CLI::App& cli, bool needs_model) {
  auto* m = cli.add_option("model", model, "A GGUF model file");
  if (needs_model) m->required();
  cli.add_option("-t,--threads", threads,
                 "Threads; default: the cores that the affinity mask and CPU quota allow");
  cli.add_option("--isa", isa, "Force an instruction set: scalar, avx2 or avx512");
  cli.add_option("--activations", activations,
                 "int8 (default): activations of quantized weights in 8 bits, a scale for 32; f32: exact, KV "
                 "in f32 unless --kv says else")
      ->check(CLI::IsMember({"int8", "f32"}));
  cli.add_option("--kv", kv,
                 "Format of the KV cache: f16 (default), f32, bf16 or q8 (8 bits, a scale a token and head)")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8"}));
  cli.add_option("--context", context,
                 "Tokens of prompt and answer a sequence may have; default: the model's");
  cli.add_option("--page-size", page_size, "Tokens a KV page holds")->capture_default_str();
  cli.add_option("--prefill-tokens", prefill_tokens, "Prompt tokens a step (the prefill chunk)")
      ->capture_default_str();
  cli.add_option("--no-fuse", without_fusions, "Fused operators to leave apart, or 'all'")->delimiter(',');
  cli.add_option("--assume-pre", assume_pre,
                 "Pre-tokenizer to use where the file names none or an unknown one");
  cli.add_flag("--json", json, "One JSON object on stdout instead of text");
}

Result<SessionOptions> CommonOptions::session() const {
  SessionOptions o;
  if (threads < 0) return invalid_argument("--threads is ", threads, ": use 1 or more");
  o.cpu.threads = threads;
  if (!isa.empty()) {
    RIDGE_ASSIGN(o.cpu.isa, parse_isa(isa));
  }
  o.assume_pre = assume_pre;
  EngineOptions& e = o.engine;
  e.formats.activations = activations == "f32" ? ActivationFormat::kF32 : ActivationFormat::kInt8;
  const std::string format = !kv.empty() ? kv : activations == "f32" ? "f32" : "f16";
  e.kv.k_type = e.kv.v_type = format == "f32" ? kF32 : format == "bf16" ? kBF16 : format == "q8" ? kI8 : kF16;
  e.kv.context = context, e.kv.page_size = page_size, e.prefill_tokens = prefill_tokens;
  for (const AnyOperator* op : operators())
    if (!op->replaces().empty()) e.plan.fusions.insert(op->name());
  for (const std::string& name : without_fusions) {
    if (name == "all") {
      e.plan.fusions.clear();
    } else if (e.plan.fusions.erase(name) == 0 && find_operator(name) == nullptr) {
      return invalid_argument("--no-fuse ", printable(name), ": no operator has that name");
    }
  }
  return o;
}

}  // namespace ridge::app
