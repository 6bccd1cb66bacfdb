#include "lab/trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "lab/workload_json.h"
#include "machine/plausible.h"

namespace ridge {

namespace {

using Json = nlohmann::ordered_json;
constexpr int kRequests = 1, kEngine = 2;

/// What the rows of a phase were judged by (Profiler::finish()), for its calls one by one: the ceilings as
/// they were read during the run, and the level that each row's data come from.
class PhaseJudge {
 public:
  PhaseJudge(const ProfilePhase& phase, const ThreadCeilings& ceilings) : ceilings_(ceilings) {
    for (double& flops : ceilings_.flops) flops *= phase.drift.arithmetic();
    unknown_.reuse_bytes = phase.drift.bytes, unknown_.far_read_rate = phase.drift.now;
    for (const ProfileRow& r : phase.rows) {
      Occasion& o = of_row_[{r.op, r.kernel, r.shape, r.formats}];
      o.reuse_bytes = r.occasion.reuse_bytes, o.far_read_rate = r.occasion.far_read_rate;
    }
  }
  Verdict verdict(const CallSlice& c) const {
    const auto row = of_row_.find({c.name->op, c.name->kernel, c.name->shape, c.name->formats});
    Occasion o = row != of_row_.end() ? row->second : unknown_;
    o.measured_us = static_cast<double>(c.end_ns - c.begin_ns) / 1e3;
    return judge(*c.cost, ceilings_, o);
  }

 private:
  ThreadCeilings ceilings_;
  Occasion unknown_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Occasion> of_row_;
};

class TraceWriter {
 public:
  explicit TraceWriter(const Profile& p) : p_(p), origin_ns_(first_instant(p)) {
    for (const ProfilePhase& phase : p.phases)
      judges_.try_emplace(phase.phase, phase, p.machine.at(p.threads));
    out_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":";
    append(about());
    out_ += ",\"traceEvents\":[\n";
  }

  std::string write() {
    name("process_name", kRequests, 0, "requests");
    name("process_name", kEngine, 0, "engine");
    name("thread_name", kEngine, 1, "steps and operators");
    requests();
    for (size_t i = 0; i < p_.steps.size(); ++i) step(i);
    return out_ + "\n]}\n";
  }

 private:
  static int64_t first_instant(const Profile& p) {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const StageSpan& s : p.stages)
      if (s.end_ns >= s.begin_ns) first = std::min(first, s.begin_ns);
    for (const StepSlice& s : p.steps) first = std::min(first, s.begin_ns);
    return first;
  }

  Json about() const {
    Json j = {{"workload", workload_json(p_.workload)},
              {"machine",
               {{"cpu", p_.machine.cpu},
                {"isa", p_.machine.isa},
                {"threads", p_.threads},
                {"measured", p_.machine.date}}},
              {"provenance", {{"date", p_.date}, {"commit", p_.commit}, {"command", p_.command}}}};
    if (const std::string why = disturbed(p_.machine); !why.empty()) j["machine"]["disturbed"] = why;
    if (const int64_t errors = clock_errors(p_.stages); errors > 0) j["clock_errors"] = errors;
    return j;
  }

  void append(const Json& j) { out_ += j.dump(-1, ' ', false, Json::error_handler_t::replace); }
  void event(const Json& j) {
    if (!first_) out_ += ",\n";
    first_ = false;
    append(j);
  }
  void name(const char* what, int process, int64_t track, const std::string& value) {
    event({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{"name", value}}}});
  }
  void slice(const std::string& what, const char* category, int process, int64_t track, int64_t begin_ns,
             int64_t end_ns, Json args) {
    Json e = {{"ph", "X"},
              {"name", what},
              {"cat", category},
              {"pid", process},
              {"tid", track},
              {"ts", static_cast<double>(begin_ns - origin_ns_) / 1e3},
              {"dur", static_cast<double>(end_ns - begin_ns) / 1e3}};
    if (!args.empty()) e["args"] = std::move(args);
    event(e);
  }

  void requests() {
    struct Life {
      int64_t begin_ns, end_ns;
    };
    std::map<int64_t, Life> lives;
    for (const StageSpan& s : p_.stages) {
      if (s.end_ns < s.begin_ns) continue;  // how long it was is unknown; otherData counts it
      const auto found = lives.try_emplace(s.request, Life{s.begin_ns, s.end_ns}).first;
      found->second.begin_ns = std::min(found->second.begin_ns, s.begin_ns);
      found->second.end_ns = std::max(found->second.end_ns, s.end_ns);
    }
    for (const auto& [id, life] : lives) {
      name("thread_name", kRequests, id, text("request ", id));
      slice(text("request ", id), "request", kRequests, id, life.begin_ns, life.end_ns, Json::object());
    }
    for (const StageSpan& s : p_.stages)
      if (s.end_ns >= s.begin_ns)
        slice(stage_name(s.stage), "stage", kRequests, s.request, s.begin_ns, s.end_ns, Json::object());
  }

  void step(size_t index) {
    const StepSlice& s = p_.steps[index];
    const PhaseJudge& judge = judges_.at(s.phase);
    slice(phase_name(s.phase), "step", kEngine, 1, s.begin_ns, s.end_ns,
          {{"step", index}, {"tokens", s.tokens}});
    int64_t at = s.begin_ns;
    const auto host_until = [&](int64_t end_ns) {
      if (end_ns > at) slice("host", "host", kEngine, 1, at, end_ns, Json::object());
    };
    for (const CallSlice& c : s.calls) {
      host_until(c.begin_ns);
      call(c, judge.verdict(c));
      at = c.end_ns;
    }
    host_until(s.end_ns);
  }

  void call(const CallSlice& c, const Verdict& v) {
    const Cost& cost = *c.cost;
    Json bytes = Json::object();
    for (size_t d = 0; d < kDataClasses; ++d)
      if (cost.read_bytes[d] + cost.written_bytes[d] > 0)
        bytes[data_class_name(static_cast<DataClass>(d))] = {{"read", cost.read_bytes[d]},
                                                             {"written", cost.written_bytes[d]}};
    slice(c.name->op, "operator", kEngine, 1, c.begin_ns, c.end_ns,
          {{"label", c.name->label},
           {"shape", c.name->shape},
           {"kernel", c.name->kernel},
           {"formats", c.name->formats},
           {"flops", cost.total_flops()},
           {"bytes", bytes},
           {"limit_us", v.limit_us},
           {"bound", bound_name(v.bound)},
           {"attainment", v.attainment}});
  }

  const Profile& p_;
  std::map<Phase, PhaseJudge> judges_;
  int64_t origin_ns_;
  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string trace_json(const Profile& profile) {
  return TraceWriter(profile).write();
}

}  // namespace ridge
