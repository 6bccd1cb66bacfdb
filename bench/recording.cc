// What recording the account costs: decode with the Profiler attached beside decode without, in blocks of
// off, on, on, off in one process, and, as a control, off beside off. One JSON object on stdout.
//
//   recording MODEL.gguf [threads, default 2] [blocks, default 15] [output tokens, default 128]

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "account/recorder.h"
#include "advise/advise.h"
#include "advise/experiment.h"
#include "lab/workload.h"
#include "lab/workload_json.h"

namespace ridge {
namespace {

constexpr int64_t kPrompt = 16;

/// Microseconds from the first token of an answer to its last.
Result<double> decode_us(InferenceEngine& engine, const std::vector<int32_t>& prompt, int64_t output) {
  Request request;
  request.prompt = prompt;
  request.max_new_tokens = output + 1;
  RIDGE_TRY(engine.submit(std::move(request)).status());
  int64_t first = 0;
  while (!engine.idle()) {
    RIDGE_ASSIGN(const auto events, engine.step());
    for (const TokenEvent& e : events)
      if (e.finish == Finish::kError) return e.error;
    if (first == 0 && !events.empty()) first = now_ns();
  }
  return static_cast<double>(now_ns() - first) / 1e3;
}

/// Recorded time over unrecorded time, less 1, in percent: a number a block, their median and its interval.
nlohmann::ordered_json percents(const AdviceRecord& r) {
  nlohmann::ordered_json each = nlohmann::ordered_json::array();
  for (const double gain : r.block_gains) each.push_back(-100 * gain);
  return {{"median", -100 * r.measured.value},
          {"low", -100 * r.measured.high},
          {"high", -100 * r.measured.low},
          {"confidence", r.confidence},
          {"blocks", each},
          {"off_us", r.original_us},
          {"on_us", r.changed_us},
          {"pressure", r.pressure}};
}

Status measure(const char* model, int threads, int blocks, int64_t output) {
  SessionOptions options;
  options.device.cpu.threads = threads;
  for (const FusedOperator& f : fused_operators()) options.engine.plan.fusions.insert(f.name);
  options.engine.kv.context = kPrompt + output + 1;
  RIDGE_ASSIGN(const auto session, Session::open(model, options));
  WorkloadOptions workload;
  workload.prompt_tokens = kPrompt, workload.output_tokens = output;
  RIDGE_ASSIGN(const auto prompt, workload_prompt(*session, workload));
  const Arm off = [&] { return decode_us(session->engine(), prompt, output); };
  const Arm on = [&]() -> Result<double> {
    Profiler profiler;
    session->engine().set_observer(&profiler);
    auto us = decode_us(session->engine(), prompt, output);
    session->engine().set_observer(nullptr);
    return us;
  };
  ExperimentOptions e;
  e.max_blocks = blocks, e.budget_s = 1e9;
  AdviceRecord cost, control;
  RIDGE_TRY(run_experiment(off, on, e, &cost));
  RIDGE_TRY(run_experiment(off, off, e, &control));
  if (!cost.interval_known)
    return invalid_argument(blocks, " blocks make no interval: use ", least_blocks(e.confidence), " or more");
  nlohmann::ordered_json out;
  out["recording_percent"] = percents(cost), out["control_percent"] = percents(control);
  out["workload"] = workload_json(describe_workload(*session, prompt, workload));
  std::printf("%s\n", out.dump().c_str());
  return {};
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  const int threads = number(2, 2), blocks = number(3, 15), output = number(4, 128);
  if (argc < 2 || threads < 1 || blocks < 1 || output < 1) {
    std::fprintf(stderr, "usage: recording MODEL.gguf [threads] [blocks] [output tokens]\n");
    return 2;
  }
  const ridge::Status status = ridge::measure(argv[1], threads, blocks, output);
  if (!status.ok()) std::fprintf(stderr, "recording: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
