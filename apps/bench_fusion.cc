// ridge bench fusion: what each fused operator is worth in a decode step.

#include <cstdio>

#include "bench_parts.h"
#include "lab/fusion_bench.h"

namespace ridge::app {

namespace {

struct FusionChoices {
  CommonOptions common;
  WorkloadOptions workload;
  std::string machine;
  int rounds = 5;
};

Status run(const FusionChoices& o) {
  RIDGE_ASSIGN(const SessionOptions options, o.common.session(o.workload));
  RIDGE_ASSIGN(const auto session, Session::open(o.common.model, options));
  RIDGE_TRY(workload_prompt(*session, o.workload).status());  // refused before a minute of measuring
  RIDGE_ASSIGN(const Machine machine, machine_for(o.machine, session->device()));
  RIDGE_ASSIGN(const FusionBench bench, bench_fusion(*session, session->engine().options(), machine,
                                                     o.workload, o.rounds, interrupted));
  std::fputs(o.common.json ? (fusion_json(bench, command_line()) + "\n").c_str() : fusion_text(bench).c_str(),
             stdout);
  return {};
}

}  // namespace

Command add_bench_fusion(CLI::App& bench) {
  auto o = std::make_shared<FusionChoices>();
  o->workload.prompt_tokens = 128;
  CLI::App* sub = bench.add_subcommand(
      "fusion", "Time a decode step with and without each fused operator, one by one and all together");
  o->common.add_to(*sub);
  add_workload_options(*sub, &o->workload);
  sub->add_option("--rounds", o->rounds, "Rounds in which every variant is timed once, in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  sub->add_option("--machine", o->machine, "Machine file of 'ridge probe'");
  sub->footer(
      "Examples:\n  ridge bench fusion model.gguf\n  ridge bench fusion llama-3-8b --synthetic --device cuda "
      "--batch 8 --context 1024 --json");
  return {sub, [o] { return run(*o); }};
}

}  // namespace ridge::app
