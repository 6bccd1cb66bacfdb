#include <charconv>

#include "base/limits.h"
#include "engine/option_names.h"
#include "verbs.h"

namespace ridge::app {

CLI::Validator thread_count() {
  return {[](const std::string& given) {
            // What is no number at all is told by its type.
            const bool number = given.find_first_not_of("+-0123456789") == std::string::npos;
            int n = 0;
            const char* const end = given.data() + given.size();
            const auto read = std::from_chars(given.data() + (given.rfind('+', 0) == 0), end, n);
            const bool in = read.ec == std::errc() && read.ptr == end && n >= 1 && n <= limits::kThreads;
            return number && !given.empty() && !in
                       ? text("is ", printable(given), ": use 1 to ", limits::kThreads)
                       : std::string();
          },
          "", text("1 to ", limits::kThreads)};
}

void CommonOptions::add_to(CLI::App& cli, bool needs_model) {
  auto* m = cli.add_option("model", model, "A GGUF model file");
  cli.add_flag("--synthetic", synthetic,
               "MODEL names a known size instead, with random weights: llama-3-8b, qwen3-8b or qwen3-0.6b");
  if (needs_model) m->required();
  cli.add_option("--device", device, "cpu (default) or cuda: one NVIDIA GPU of compute capability 9.0")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  cli.add_option("-t,--threads", threads,
                 "Threads, 1 or more; default: the cores that the affinity mask and CPU quota allow")
      ->check(thread_count());
  cli.add_option("--isa", isa, "Force an instruction set: scalar, avx2 or avx512");
  cli.add_option(
         "--activations", activations,
         "int8: activations of quantized weights in 8 bits, a scale for 32, the default on a CPU; "
         "bf16; f32: exact, the default on a GPU; KV is f32 where f32 is asked for, unless --kv says else")
      ->check(CLI::IsMember({"int8", "bf16", "f32"}));
  cli.add_option("--kv", kv,
                 "Format of the KV cache: f16 (default), f32, bf16 or q8 (8 bits, a scale a token and head)")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8"}));
  cli.add_option("--context", context,
                 "Tokens of prompt and answer a sequence may have; default: the model's");
  cli.add_option("--page-size", page_size, "Tokens a KV page holds")->capture_default_str();
  cli.add_option("--prefill-tokens", prefill_tokens, "Prompt tokens a step (the prefill chunk)")
      ->capture_default_str();
  cli.add_option("--no-fuse", without_fusions, "Fused operators to leave apart, or 'all'")->delimiter(',');
  cli.add_option(
      "--assume-pre", assume_pre,
      "Pre-tokenizer of a file that names none or an unknown one, as gpt-2, llama-bpe, qwen2 or smollm");
  cli.add_flag("--no-graphs", without_graphs,
               "On a GPU: launch decode steps call by call, not as recorded graphs");
  cli.add_flag("--no-look-ahead", without_look_ahead,
               "On a GPU: queue a step only when the tokens of the one before it have been seen");
  cli.add_flag("--json", json, "One JSON object on stdout instead of text");
}

Result<SessionOptions> CommonOptions::session() const {
  SessionOptions o;
  if (threads < 0) return invalid_argument("--threads is ", threads, ": use 1 or more");
  if (context < 0) return invalid_argument("--context is ", context, ": use 1 or more, or 0 for the model's");
  if (page_size < 1 || page_size > KvPool::kMostTokensOfPage)
    return invalid_argument("--page-size is ", page_size, ": use 1 to ", KvPool::kMostTokensOfPage,
                            " tokens");
  if (prefill_tokens < 1) return invalid_argument("--prefill-tokens is ", prefill_tokens, ": use 1 or more");
  if (device == "cpu" && (without_graphs || without_look_ahead))
    return invalid_argument(without_graphs ? "--no-graphs" : "--no-look-ahead",
                            " is for a GPU: leave it out, or --device cuda");
  if (device != "cpu" && !isa.empty())
    return invalid_argument("--isa is for --device cpu, not ", device, ": leave it out");
  o.device.backend = device;
  o.device.cpu.threads = threads;
  RIDGE_TRY(apply_names({isa, activations, kv, without_fusions, assume_pre}, "--", &o));
  o.synthetic = synthetic;
  EngineOptions& e = o.engine;
  e.plan.graphs = !without_graphs, e.look_ahead = !without_look_ahead;
  e.kv.context = context, e.kv.page_size = page_size, e.prefill_tokens = prefill_tokens;
  return o;
}

Result<SessionOptions> CommonOptions::session(const WorkloadOptions& workload) const {
  RIDGE_ASSIGN(SessionOptions o, session());
  if (workload.batch < 1 || workload.batch > limits::kBatchSequences)
    return invalid_argument("--batch is ", workload.batch, ": use 1 to ", limits::kBatchSequences);
  o.engine.max_sequences = workload.batch;
  o.needed_tokens = tokens_of(workload);
  return o;
}

}  // namespace ridge::app
