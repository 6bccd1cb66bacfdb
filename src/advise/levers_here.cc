#include "advise/levers_here.h"

#include <algorithm>
#include <set>

#include "advise/effects.h"
#include "engine/kv_pool.h"
#include "engine/option_names.h"
#include "ops/linear/linear.h"

namespace ridge {

namespace {

/// What a step's plan, fused as far as it goes, has that levers act on.
struct Ground {
  std::set<std::string> fused;  // operators
  bool quantized = false;       // some linear has weights that 8-bit activations are for
};

Result<Ground> ground_of(Session& session, const SessionOptions& options) {
  const Model& model = session.model();
  KvOptions kv = options.engine.kv;
  kv.context = kv.page_size, kv.pages = 1;
  RIDGE_ASSIGN(const KvPool pool, KvPool::create(session.device(), model.kv_shapes(), kv));
  StepPlan plan(session.device());
  BatchShape batch;
  batch.decodes = batch.prefills = 1, batch.prefill_tokens = 2, batch.logit_rows = 2;
  model.write_step(plan, batch, pool.pages(), options.engine.formats);
  Ground ground;
  for (const PlannedCall& c : plan.calls())
    if (std::string_view(c.call.op->name()) == "linear")
      ground.quantized |= is_block_quantized(c.call.as<LinearArgs>().w.dtype);
  PlanOptions all;
  all.graphs = false;
  for (const FusedOperator& f : fused_operators()) all.fusions.insert(f.name);
  RIDGE_TRY(plan.finish(all));
  for (const PlannedCall& c : plan.calls())
    if (all.fusions.count(c.call.op->name()) > 0) ground.fused.insert(c.call.op->name());
  return ground;
}

std::string written(const Lever& l) {
  return text(l.name, "=", l.to);
}

/// "activations=f32, kv=f32, …"; numbers as examples.
std::string list_of(const std::vector<Lever>& levers) {
  std::string out;
  for (const Lever& l : levers) out += text(out.empty() ? "" : ", ", written(l));
  return out;
}

/// Why a lever does nothing here; empty: it does.
std::string refusal(const Lever& lever, const std::string& now, const Ground& ground,
                    const SessionOptions& options, const WorkloadOptions& workload, int64_t prompt_tokens) {
  if (lever.to == now) return "is how the workload runs already";
  if (lever.name == "activations" && !ground.quantized)
    return text("changes nothing: no linear of this model has quantized weights to multiply by ", lever.to,
                " activations");
  if (lever.name == "prefill-chunk") {
    const Chunks before = chunks_of(prompt_tokens, workload.batch, options.engine.prefill_tokens),
                 after = chunks_of(prompt_tokens, workload.batch, std::atoll(lever.to.c_str()));
    if (before.steps == after.steps && before.keys == after.keys)
      return text("changes nothing: ", workload.batch, " times ", prompt_tokens, " tokens run in ",
                  before.steps, " steps either way");
  }
  if (lever.name.rfind("fuse-", 0) == 0 && ground.fused.count(lever.name.substr(5)) == 0)
    return text("changes nothing: this model's steps have no sequence that ", lever.name.substr(5),
                " replaces");
  return "";
}

/// What a lever's setting is now.
std::string setting(const std::string& name, Session& session, const SessionOptions& options) {
  const EngineOptions& e = options.engine;
  if (name == "activations") return activation_format_name(e.formats.activations);
  if (name == "kv") return e.kv.k_type == e.kv.v_type ? kv_name(e.kv.k_type) : "";
  if (name == "threads") return text(session.device().host_threads());
  if (name == "prefill-chunk") return text(e.prefill_tokens);
  return e.plan.fusions.count(name.substr(5)) > 0 ? "on" : "off";
}

std::vector<Lever> candidates(Session& session, const SessionOptions& options,
                              const WorkloadOptions& workload, int64_t prompt_tokens) {
  std::vector<Lever> all = {{"activations", "", "f32"}, {"activations", "", "int8"}};
  for (const char* kv : {"f32", "f16", "bf16", "q8"}) all.push_back({"kv", "", kv});
  for (int n = 1; n <= session.device().host_threads(); ++n) all.push_back({"threads", "", text(n)});
  std::set<int64_t> chunks;
  for (const int64_t c :
       {options.engine.prefill_tokens / 2, 2 * options.engine.prefill_tokens, workload.batch * prompt_tokens})
    if (c >= 1 && chunks.insert(c).second) all.push_back({"prefill-chunk", "", text(c)});
  for (const FusedOperator& f : fused_operators())
    for (const char* to : {"on", "off"}) all.push_back({"fuse-" + f.name, "", to});
  return all;
}

}  // namespace

Result<std::vector<Lever>> levers_here(Session& session, const SessionOptions& options,
                                       const WorkloadOptions& workload, int64_t prompt_tokens) {
  RIDGE_ASSIGN(const Ground ground, ground_of(session, options));
  std::vector<Lever> here;
  for (Lever& l : candidates(session, options, workload, prompt_tokens)) {
    l.from = setting(l.name, session, options);
    if (refusal(l, l.from, ground, options, workload, prompt_tokens).empty()) here.push_back(std::move(l));
  }
  return here;
}

Status check_levers(Session& session, const SessionOptions& options, const WorkloadOptions& workload,
                    int64_t prompt_tokens, const std::vector<Lever>& levers) {
  if (levers.empty()) return {};
  RIDGE_ASSIGN(const Ground ground, ground_of(session, options));
  for (const Lever& l : levers) {
    const std::string why =
        refusal(l, setting(l.name, session, options), ground, options, workload, prompt_tokens);
    if (why.empty()) continue;
    RIDGE_ASSIGN(const auto here, levers_here(session, options, workload, prompt_tokens));
    return invalid_argument("lever ", written(l), " ", why, "; here there are ", list_of(here));
  }
  return {};
}

}  // namespace ridge
