// ridge advise: one change of configuration, predicted from the account, tested, scored.

#include <cstdio>
#include <cstdlib>

#include "advise/advise.h"
#include "advise/levers_here.h"
#include "advise/score.h"
#include "base/build.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/user_folder.h"
#include "lab/probe.h"
#include "lab/report.h"
#include "refusals.h"
#include "verbs.h"

namespace ridge::app {

namespace {

struct AdviseVerb {
  CommonOptions common;
  AdviseOptions wanted;
  std::vector<std::string> levers;
  std::string machine, score, report;
  std::optional<double> ttft_goal_ms;
  bool predict_only = false;
};

/// Two engines at once: each with the room that the workload needs, not the model's whole context.
void make_room(const WorkloadOptions& w, EngineOptions* engine) {
  // No tokenizer makes more tokens of a text than it has bytes, what it puts around it aside.
  const auto prompt = w.prompt.empty() ? w.prompt_tokens : static_cast<int64_t>(w.prompt.size()) + 8;
  constexpr int64_t kSmall = 8192;
  if (engine->kv.context == 0 && prompt <= kSmall && w.output_tokens <= kSmall - prompt)
    engine->kv.context = std::max<int64_t>(2, prompt + w.output_tokens);
}

Status advise_verb(AdviseVerb o) {
  for (const std::string& written : o.levers) {
    if (written == "auto" && o.levers.size() > 1)
      return invalid_argument("--lever auto is given beside others: use it alone, or name levers");
    if (written == "auto") continue;
    RIDGE_ASSIGN(Lever lever, parse_lever(written, o.common.device));
    for (const Lever& other : o.wanted.levers)
      if (other.name == lever.name && other.to == lever.to)
        return invalid_argument("--lever ", printable(written), " is given twice");
    o.wanted.levers.push_back(std::move(lever));
  }
  RIDGE_ASSIGN(SessionOptions options, o.common.session(o.wanted.workload));
  if (o.wanted.workload.output_tokens < 1)
    return invalid_argument("--output-tokens is ", o.wanted.workload.output_tokens, ": use 1 or more");
  if (!(o.wanted.budget_s > 0))
    return invalid_argument("--budget is ", o.wanted.budget_s, ": use more than 0");
  if (!(o.wanted.confidence >= 0.5 && o.wanted.confidence < 1))
    return invalid_argument("--confidence is ", o.wanted.confidence, ": use 0.5 or more and less than 1");
  if (o.ttft_goal_ms) {
    if (!(*o.ttft_goal_ms > 0))
      return invalid_argument("--ttft-goal is ", *o.ttft_goal_ms, ": use more than 0 ms");
    o.wanted.ttft_goal_us = *o.ttft_goal_ms * 1e3;
  }
  if (o.wanted.quality_tokens < 0 || o.wanted.quality_tokens > kMostQualityTokens)
    return invalid_argument("--quality-tokens is ", o.wanted.quality_tokens, ": use 0 to ",
                            kMostQualityTokens);
  make_room(o.wanted.workload, &options.engine);
  // Where results go is looked at before they cost a minute.
  const std::string score = o.score.empty() ? default_score_path() : o.score;
  RIDGE_TRY(check_apart({model_input(o.common), machine_input(o.machine, o.common.device, o.common.isa)},
                        {{o.score.empty() ? "the kept score" : "--score", score}, {"--report", o.report}}));
  const char* const kept = std::getenv("RIDGE_ADVICE");
  if (score.empty() && kept != nullptr)
    say("RIDGE_ADVICE is set and empty: no score is kept; name its file with --score");
  else if (score.empty())
    say(text(kNoUserFolder, ": no score is kept; name its file with --score"));
  else if (!o.predict_only)
    RIDGE_TRY(prepare_score(score).within(o.score.empty() ? "the kept score" : "--score"));
  RIDGE_TRY(check_output_file("--report", o.report));
  RIDGE_ASSIGN(const auto session, Session::open(o.common.model, options));
  // Refused before a minute of measuring.
  RIDGE_ASSIGN(const auto prompt, workload_prompt(*session, o.wanted.workload));
  RIDGE_TRY(check_levers(*session, options, o.wanted.workload, static_cast<int64_t>(prompt.size()),
                         o.wanted.levers));
  RIDGE_ASSIGN(const Machine machine, machine_for(o.machine, session->device()));
  o.wanted.experiment = !o.predict_only;
  o.wanted.date = utc_now(), o.wanted.commit = built_commit();
  o.wanted.command = command_line(), o.wanted.interrupted = interrupted;
  if (stderr_is_terminal())
    o.wanted.progress = [](const char* what, double share) {
      std::fprintf(stderr, "\r%s %3.0f %%\x1b[K", what, 100 * share);
    };
  auto advised = advise(*session, options, machine, o.wanted);
  if (stderr_is_terminal()) std::fprintf(stderr, "\r\x1b[K");
  if (!advised.ok()) return advised.status();
  for (const AdviceRecord& r : advised->records) {
    std::fputs(
        o.common.json ? (advice_json(r) + "\n").c_str() : advice_text(r, stdout_takes_colour()).c_str(),
        stdout);
    if (r.decision != Decision::kNotRun && !score.empty()) RIDGE_TRY(append_score(score, r));
  }
  if (!o.report.empty())
    RIDGE_TRY(write_file_atomically(o.report, report_html(advised->profile, &advised->records.back())));
  if (o.common.json || score.empty()) return {};
  RIDGE_ASSIGN(const Score total, read_score(score));
  std::printf("%s\n", score_text(total).c_str());
  return {};
}

}  // namespace

Command add_advise(CLI::App& cli) {
  auto o = std::make_shared<AdviseVerb>();
  CLI::App* sub =
      cli.add_subcommand("advise", "Propose one change of configuration, predict its gain, test it");
  o->common.add_to(*sub);
  sub->add_option(
      "--lever", o->levers,
      "auto (default): the one that may gain most; or NAME=VALUE to test, repeatable: activations, kv, "
      "threads, prefill-chunk, fuse-OPERATOR");
  o->wanted.workload.prompt_tokens = 256;  // several runs fit into the budget
  add_workload_options(*sub, &o->wanted.workload);
  sub->add_option("--budget", o->wanted.budget_s, "Seconds of the experiment, for each lever")
      ->capture_default_str();
  sub->add_option("--confidence", o->wanted.confidence,
                  "Of the measured interval, over all levers of this call")
      ->capture_default_str();
  sub->add_option("--quality-tokens", o->wanted.quality_tokens,
                  "Tokens of text on which a lever that changes numerics is compared; 0: not at all")
      ->capture_default_str();
  sub->add_option("--ttft-goal", o->ttft_goal_ms,
                  "Milliseconds to the first token that are wanted: say whether one change gets there");
  sub->add_flag("--predict-only", o->predict_only, "No experiment");
  sub->add_option("--machine", o->machine, "Machine file of 'ridge probe'; default: where probe writes it");
  sub->add_option("--score", o->score,
                  "File that keeps the score; default: $RIDGE_ADVICE, else ridge/advice.jsonl in "
                  "$XDG_CACHE_HOME or ~/.cache");
  sub->add_option("--report", o->report, "Write the account and this advice as one HTML page");
  sub->footer(
      "Examples:\n  ridge advise model.gguf\n  ridge advise model.gguf --lever kv=q8 --prompt-tokens 2048 "
      "--batch 4\n  "
      "ridge advise model.gguf --activations f32 --lever activations=int8 --budget 60 --report report.html");
  return {sub, [o, sub]() -> Status {
            if (o->predict_only)
              RIDGE_TRY(refuse_given(*sub, {"--budget", "--confidence", "--quality-tokens"},
                                     "for the experiment, which --predict-only leaves out"));
            return advise_verb(*o);
          }};
}

}  // namespace ridge::app
