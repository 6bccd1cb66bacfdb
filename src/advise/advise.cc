#include "advise/advise.h"

#include <algorithm>
#include <charconv>

#include "account/recorder.h"
#include "advise/experiment.h"
#include "advise/goal.h"
#include "advise/levers_here.h"
#include "advise/quality.h"
#include "lab/workload.h"
#include "machine/plausible.h"

namespace ridge {

namespace {

constexpr std::string_view kLeverNames =
    "activations=f32|int8, kv=f32|f16|bf16|q8, threads=N, prefill-chunk=N, fuse-OPERATOR=on|off";

Result<int64_t> positive(const Lever& lever, int64_t most) {
  int64_t n = 0;
  const char* end = lever.to.data() + lever.to.size();
  if (const auto [stop, error] = std::from_chars(lever.to.data(), end, n);
      error != std::errc{} || stop != end || n < 1 || n > most)
    return invalid_argument("lever ", lever.name, "=", printable(lever.to), ": use 1 to ", most);
  return n;
}

/// First submission to last token; microseconds.
Result<double> timed_run(InferenceEngine& engine, const std::vector<int32_t>& prompt,
                         const AdviseOptions& wanted) {
  const int64_t begin = now_ns();
  RIDGE_TRY(run_workload(engine, prompt, wanted.workload, wanted.interrupted));
  return static_cast<double>(now_ns() - begin) / 1e3;
}

/// The other arm: the same model, one setting changed, on a device of its own where threads differ.
struct Changed {
  std::unique_ptr<Device> device;
  std::unique_ptr<InferenceEngine> engine;
};
Result<Changed> change(Session& session, const SessionOptions& options, const Lever& lever) {
  SessionOptions other = options;
  RIDGE_TRY(apply_lever(lever, &other));
  Changed c;
  if (lever.name == "threads") {
    RIDGE_ASSIGN(c.device, create_device(other.device));
  }
  Device& device = c.device ? *c.device : session.device();
  RIDGE_ASSIGN(c.engine, InferenceEngine::create(device, session.model(), other.engine));
  return c;
}

Status test_lever(Session& session, const SessionOptions& options, const AdviseOptions& wanted, int levers,
                  const std::vector<int32_t>& prompt, AdviceRecord* record) {
  const Lever& lever = record->choice()->lever;
  RIDGE_ASSIGN(const Changed changed, change(session, options, lever));
  ExperimentOptions e;
  e.budget_s = wanted.budget_s, e.confidence = wanted.confidence, e.levers_tried = levers;
  e.interrupted = wanted.interrupted;
  e.state = state_reader(session.device());
  if (wanted.progress) e.progress = [&](double share) { wanted.progress("experiment", share); };
  RIDGE_TRY(run_experiment([&] { return timed_run(session.engine(), prompt, wanted); },
                           [&] { return timed_run(*changed.engine, prompt, wanted); }, e, record));
  record->changes_numerics = changes_numerics(lever);
  if (!record->changes_numerics || wanted.quality_tokens < 1) return {};
  if (wanted.progress) wanted.progress("quality", 0);
  RIDGE_ASSIGN(std::vector<int32_t> ids, session.encode_text(fixed_text()));
  const size_t once = ids.size();
  ids.resize(static_cast<size_t>(wanted.quality_tokens));
  for (size_t i = once; i < ids.size(); ++i) ids[i] = ids[i - once];  // over and over
  RIDGE_ASSIGN(record->quality, quality_cost(session.device(), session.model(), session.engine().options(),
                                             changed.engine->options(), ids));
  return {};
}

/// The account of each of a few runs, in order of their time.
Result<std::vector<Profile>> profile_runs(Session& session, const Machine& machine,
                                          const AdviseOptions& wanted, const std::vector<int32_t>& prompt) {
  // The first run touches memory and writes plans: not what a server repeats.
  RIDGE_TRY(timed_run(session.engine(), prompt, wanted).status());
  constexpr int kRuns = 3;
  std::vector<std::pair<double, Profile>> runs;
  for (int run = 0; run < kRuns; ++run) {
    if (wanted.interrupted && wanted.interrupted()) return Status(Code::kCancelled, "interrupted");
    Profiler profiler;
    session.engine().set_observer(&profiler);
    const auto us = timed_run(session.engine(), prompt, wanted);
    session.engine().set_observer(nullptr);
    if (!us.ok()) return us.status();
    runs.emplace_back(*us, profiler.finish(machine, session.device().host_threads()));
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Profile> profiles;
  for (auto& [us, profile] : runs) profiles.push_back(std::move(profile));
  return profiles;
}

}  // namespace

Result<Lever> parse_lever(const std::string& written, const std::string& backend) {
  const size_t equals = written.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == written.size())
    return invalid_argument("--lever ", printable(written), ": use auto or one of ", kLeverNames);
  const Lever lever{written.substr(0, equals), "", written.substr(equals + 1)};
  SessionOptions scratch;
  scratch.device.backend = backend;
  RIDGE_TRY(apply_lever(lever, &scratch));
  return lever;
}

Status apply_lever(const Lever& l, SessionOptions* options) {
  EngineOptions& e = options->engine;
  const auto unknown = [&](const char* wanted) {
    return invalid_argument("lever ", l.name, "=", printable(l.to), ": use ", wanted);
  };
  if (l.name == "activations") {
    if (l.to != "f32" && l.to != "int8") return unknown("f32 or int8");
    e.formats.activations = l.to == "f32" ? ActivationFormat::kF32 : ActivationFormat::kInt8;
  } else if (l.name == "kv") {
    const std::pair<const char*, DType> types[] = {
        {"f32", kF32}, {"f16", kF16}, {"bf16", kBF16}, {"q8", kI8}};
    const auto found =
        std::find_if(std::begin(types), std::end(types), [&](auto& t) { return l.to == t.first; });
    if (found == std::end(types)) return unknown("f32, f16, bf16 or q8");
    e.kv.k_type = e.kv.v_type = found->second;
  } else if (l.name == "threads") {
    RIDGE_ASSIGN(const int64_t n, positive(l, limits::kThreads));
    options->device.cpu.threads = static_cast<int>(n);
  } else if (l.name == "prefill-chunk") {
    RIDGE_ASSIGN(e.prefill_tokens, positive(l, limits::kModelContext));
  } else if (l.name.rfind("fuse-", 0) == 0) {
    const AnyOperator* op = find_operator(l.name.substr(5));
    const auto fused = ridge::fused_operators(options->device.backend);
    if (op == nullptr || std::find(fused.begin(), fused.end(), op) == fused.end()) {
      std::string names;
      for (const AnyOperator* f : fused) names += text(names.empty() ? "fuse-" : ", fuse-", f->name());
      return invalid_argument("lever ", printable(l.name), ": ",
                              op == nullptr ? "no operator has that name"
                                            : text(op->name(), " fuses nothing on ", options->device.backend),
                              "; the fusions there are ", names.empty() ? "none" : names);
    }
    if (l.to != "on" && l.to != "off") return unknown("on or off");
    if (l.to == "on")
      e.plan.fusions.insert(op->name());
    else
      e.plan.fusions.erase(op->name());
  } else {
    return invalid_argument("no lever is called ", printable(l.name), ": use ", kLeverNames);
  }
  return {};
}

bool changes_numerics(const Lever& l) {
  return l.name == "activations" || l.name == "kv";
}

std::vector<FusedOperator> fused_operators() {
  std::vector<FusedOperator> fused;
  for (const AnyOperator* op : ridge::fused_operators("cpu"))
    fused.push_back({op->name(), {op->replaces().begin(), op->replaces().end()}});
  return fused;
}

Result<Advised> advise(Session& session, const SessionOptions& options, const Machine& machine,
                       const AdviseOptions& wanted) {
  RIDGE_ASSIGN(const std::vector<int32_t> prompt, workload_prompt(session, wanted.workload));
  RIDGE_TRY(
      check_levers(session, options, wanted.workload, static_cast<int64_t>(prompt.size()), wanted.levers));
  if (wanted.progress) wanted.progress("profile", 0);
  Advised out;
  RIDGE_ASSIGN(std::vector<Profile> runs, profile_runs(session, machine, wanted, prompt));
  for (Profile& p : runs) {
    p.workload = describe_workload(session, prompt, wanted.workload);
    p.date = wanted.date, p.commit = wanted.commit, p.command = wanted.command;
  }
  out.profile = runs[runs.size() / 2];
  const Profile& p = out.profile;

  AdviceRecord base;
  base.workload = p.workload, base.cpu = machine.cpu, base.isa = machine.isa, base.threads = p.threads;
  base.machine_date = machine.date, base.machine_disturbed = disturbed(machine);
  base.build = machine.build, base.compiler = machine.compiler;
  base.date = wanted.date, base.commit = wanted.commit, base.command = wanted.command;
  const auto fused = fused_operators();
  if (wanted.ttft_goal_us) base.goal = judge_goal(runs, *wanted.ttft_goal_us, fused);
  const std::vector<Lever> possible = levers_of(p, fused);
  for (const Lever& lever : possible) base.considered.push_back(predict(runs, lever, fused));
  if (wanted.levers.empty()) {
    base.chosen = choose(base.considered);
    out.records.push_back(base);
  }
  for (Lever lever : wanted.levers) {
    AdviceRecord r = base;
    if (lever.name == "threads") lever.from = text(p.threads);
    for (const Lever& l : possible)
      if (l.name == lever.name) lever.from = l.from;
    for (size_t i = 0; i < possible.size(); ++i)
      if (possible[i].name == lever.name && possible[i].to == lever.to) r.chosen = static_cast<int>(i);
    if (r.chosen < 0) {
      r.chosen = static_cast<int>(r.considered.size());
      r.considered.push_back(predict(runs, lever, fused));
    }
    out.records.push_back(std::move(r));
  }
  for (AdviceRecord& r : out.records) {
    if (r.choice() == nullptr || !wanted.experiment) continue;
    RIDGE_TRY(test_lever(session, options, wanted, static_cast<int>(out.records.size()), prompt, &r));
  }
  return out;
}

}  // namespace ridge
