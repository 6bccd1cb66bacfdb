// The account of a workload, and the machine that it is judged against.

#include "base/files.h"
#include "capi/model.h"
#include "lab/ceilings.h"
#include "lab/profile_run.h"

using namespace ridge;
using namespace ridge::capi;

namespace {

Result<WorkloadOptions> asked_for(const ridge_workload& w, int64_t max_sequences) {
  for (const auto& [name, value] :
       {std::pair("prompt_tokens", w.prompt_tokens), {"output_tokens", w.output_tokens}, {"batch", w.batch}})
    if (value < 0) return invalid_argument("workload->", name, " is ", value, ": use 0 (default) or more");
  if (w.batch > max_sequences)
    return invalid_argument("workload->batch is ", w.batch, ", the model was loaded with max_sequences ",
                            max_sequences);
  WorkloadOptions o;
  o.prompt_tokens = w.prompt_tokens > 0 ? w.prompt_tokens : 128;
  o.output_tokens = w.output_tokens > 0 ? w.output_tokens : 32;
  o.batch = w.batch > 0 ? w.batch : max_sequences;
  return o;
}

Result<Machine> machine_of(ridge_model& model, const char* file) {
  const Device& device = model.session->device();
  ProbeOptions options;
  options.threads = model.info.threads, options.isa = device.target().isa;
  RIDGE_ASSIGN(Machine machine,
               file != nullptr ? load_machine(file, identity_of(device)) : probe_cpu(options));
  RIDGE_TRY(check_ceilings(machine, device, file != nullptr ? file : "this machine"));
  warn_if_disturbed(machine);
  return machine;
}

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
    RIDGE_TRY(check_writable(path));  // before it costs a minute
    RIDGE_ASSIGN(const Machine machine, probe_cpu(options));
    warn_if_disturbed(machine);
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
    settle(*model);
    if (!model->running.empty())
      return invalid_argument(model->running.size(),
                              " requests are running: step them to their end or cancel them first");
    Session& session = *model->session;
    RIDGE_ASSIGN(const WorkloadOptions asked, asked_for(w, session.engine().options().max_sequences));
    RIDGE_TRY(workload_prompt(session, asked).status());  // refused before a minute of measuring
    RIDGE_ASSIGN(const Machine machine, machine_of(*model, w.machine_file));
    model->stepping = true;  // whatever ends it, the engine forgets the workload and its observer
    const auto profile = profile_workload(session, machine, asked, {"ridge_profile", nullptr, false});
    if (profile.ok()) model->stepping = false;
    settle(*model);
    RIDGE_TRY(profile.status());
    *json = new_string(profile_json(*profile));
    return {};
  });
}
