// The account of a workload, and the machine that it is judged against.

#include "lab/profile.h"
#include "base/clock.h"
#include "capi/model.h"
#include "lab/probe.h"
#include "lab/workload.h"

using namespace ridge;
using namespace ridge::capi;

namespace {

struct Plan {
  int64_t prompt_tokens = 128, output_tokens = 32, batch = 1;
};

Result<Plan> plan_of(const ridge_workload& w, int64_t max_sequences) {
  Plan p;
  for (const auto& [name, value] :
       {std::pair("prompt_tokens", w.prompt_tokens), {"output_tokens", w.output_tokens}, {"batch", w.batch}})
    if (value < 0) return invalid_argument("workload->", name, " is ", value, ": use 0 (default) or more");
  if (w.batch > max_sequences)
    return invalid_argument("workload->batch is ", w.batch, ", the model was loaded with max_sequences ",
                            max_sequences);
  if (w.prompt_tokens > 0) p.prompt_tokens = w.prompt_tokens;
  if (w.output_tokens > 0) p.output_tokens = w.output_tokens;
  p.batch = w.batch > 0 ? w.batch : max_sequences;
  return p;
}

Result<Machine> machine_of(ridge_model& model, const char* file) {
  const Device& device = model.session->device();
  if (file != nullptr) return load_machine(file, this_machine(isa_name(device.target().isa)));
  ProbeOptions options;
  options.threads = model.info.threads, options.isa = device.target().isa;
  return probe_cpu(options);
}

/// Attached to the engine, and whatever happens away again, with its requests.
class Observed {
 public:
  Observed(InferenceEngine& engine, StepObserver* observer) : engine_(engine) {
    engine_.set_observer(observer);
  }
  ~Observed() {
    for (const int64_t id : ids_) engine_.cancel(id);
    engine_.set_observer(nullptr);
  }
  /// All requests, to their last token.
  Status run(const std::vector<int32_t>& prompt, const Plan& plan) {
    for (int64_t i = 0; i < plan.batch; ++i) {
      Request request;
      request.prompt = prompt, request.max_new_tokens = plan.output_tokens;
      RIDGE_ASSIGN(const int64_t id, engine_.submit(std::move(request)));
      ids_.push_back(id);
    }
    while (!engine_.idle()) {
      RIDGE_ASSIGN(const std::vector<TokenEvent> events, engine_.step());
      for (const TokenEvent& e : events) RIDGE_TRY(e.error);
    }
    return {};
  }

 private:
  InferenceEngine& engine_;
  std::vector<int64_t> ids_;
};

}  // namespace

ridge_status ridge_probe(int32_t threads, const char* isa, const char* path) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(path, "path"));
    if (threads < 0) return invalid_argument("threads is ", threads, ": use 0 (default) or more");
    ProbeOptions options;
    options.threads = threads;
    if (isa != nullptr) {
      RIDGE_ASSIGN(options.isa, parse_isa(isa));
    }
    RIDGE_ASSIGN(const Machine machine, probe_cpu(options));
    return save_machine(path, machine);
  });
}

ridge_status ridge_profile(ridge_model* model, const ridge_workload* workload, char** json) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    RIDGE_TRY(needed(json, "json"));
    ridge_workload w = RIDGE_WORKLOAD_INIT;
    if (workload != nullptr) RIDGE_TRY(read_struct(workload, "workload", &w));
    const std::lock_guard lock(model->mutex);
    RIDGE_TRY(check_usable(*model));
    if (!model->running.empty())
      return invalid_argument(model->running.size(),
                              " requests are running: step them to their end or cancel them first");
    Session& session = *model->session;
    const EngineOptions& options = session.engine().options();
    RIDGE_ASSIGN(const Plan plan, plan_of(w, options.max_sequences));
    WorkloadOptions asked;
    asked.prompt_tokens = plan.prompt_tokens;
    RIDGE_ASSIGN(const std::vector<int32_t> prompt, workload_prompt(session, asked));
    // Once unobserved: plans are made and pages touched in the first steps alone.
    RIDGE_TRY(Observed(session.engine(), nullptr).run(prompt, plan));
    RIDGE_ASSIGN(const Machine machine, machine_of(*model, w.machine_file));
    Profiler profiler(false);
    RIDGE_TRY(Observed(session.engine(), &profiler).run(prompt, plan));
    Profile profile = profiler.finish(machine, model->info.threads);
    profile.workload = workload_of(session, options, session.device().describe());
    profile.workload.prompt_tokens = plan.prompt_tokens, profile.workload.output_tokens = plan.output_tokens;
    profile.workload.batch = plan.batch;
    profile.date = utc_now(), profile.commit = built_commit(), profile.command = "ridge_profile";
    *json = new_string(profile_json(profile));
    return {};
  });
}
