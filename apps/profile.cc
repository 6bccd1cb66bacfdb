// ridge profile: runs a workload and prints its account.

#include <cstdio>

#include "base/files.h"
#include "lab/profile_run.h"
#include "lab/report.h"
#include "lab/trace.h"
#include "refusals.h"
#include "verbs.h"

namespace ridge::app {

namespace {

struct ProfileChoices {
  CommonOptions common;
  WorkloadOptions workload;
  std::string machine, report, trace;
  bool each_row = false;
};

Status run(const ProfileChoices& o) {
  RIDGE_ASSIGN(const SessionOptions options, o.common.session(o.workload));
  // Where results go is looked at before they cost a minute.
  RIDGE_TRY(check_apart({model_input(o.common), machine_input(o.machine, o.common.device, o.common.isa)},
                        {{"--report", o.report}, {"--trace", o.trace}}));
  RIDGE_TRY(check_output_file("--report", o.report));
  RIDGE_TRY(check_output_file("--trace", o.trace));
  RIDGE_ASSIGN(const auto session, Session::open(o.common.model, options));
  RIDGE_TRY(workload_prompt(*session, o.workload).status());  // refused before a minute of measuring
  RIDGE_ASSIGN(const Machine machine, machine_for(o.machine, session->device()));
  RIDGE_ASSIGN(const Profile profile,
               profile_workload(*session, machine, o.workload, {command_line(), interrupted}));
  if (o.common.json)
    std::printf("%s\n", profile_json(profile).c_str());
  else
    std::fputs(profile_text(profile, stdout_takes_colour(), o.each_row).c_str(), stdout);
  // The account is out whatever becomes of the files.
  Status written;
  if (!o.report.empty()) written = write_file_atomically(o.report, report_html(profile, nullptr));
  if (!o.trace.empty())
    if (Status status = write_file_atomically(o.trace, trace_json(profile)); written.ok()) written = status;
  return written;
}

}  // namespace

void add_workload_options(CLI::App& cli, WorkloadOptions* o) {
  auto* prompt =
      cli.add_option("-p,--prompt", o->prompt,
                     "Prompt text; default: --prompt-tokens tokens of a fixed pseudo-random sequence");
  cli.add_option("--prompt-tokens", o->prompt_tokens, "Length of the prompt")
      ->capture_default_str()
      ->excludes(prompt);
  cli.add_option("--output-tokens", o->output_tokens, "Length of the answer")->capture_default_str();
  cli.add_option("--batch", o->batch, "Requests at once")->capture_default_str();
}

Command add_profile(CLI::App& cli) {
  auto o = std::make_shared<ProfileChoices>();
  CLI::App* sub = cli.add_subcommand(
      "profile", "Run a workload and print where its time goes, against this machine's limits");
  o->common.add_to(*sub);
  add_workload_options(*sub, &o->workload);
  sub->add_option("--machine", o->machine,
                  "Machine file of 'ridge probe'; default: the kept one, measured when missing");
  sub->add_flag("--each-row", o->each_row,
                "Print rows that differ in lengths alone one by one, not as their sum; --json always does");
  sub->add_option("--report", o->report, "Write the account as one HTML page");
  sub->add_option("--trace", o->trace,
                  "Write requests, steps and calls as a trace for Perfetto or chrome://tracing");
  sub->footer(
      "Examples:\n  ridge profile model.gguf\n  ridge profile model.gguf --report report.html --trace "
      "trace.json\n  ridge profile model.gguf --prompt-tokens 1024 "
      "--output-tokens 128 --json");
  return {sub, [o] { return run(*o); }};
}

}  // namespace ridge::app
