#include "lab/fusion_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "account/recorder.h"
#include "base/print_to.h"
#include "base/stop.h"
#include "lab/launch_json.h"
#include "lab/provenance_json.h"
#include "lab/statistics.h"
#include "lab/workload_json.h"

namespace ridge {

namespace {

EngineOptions options_of(const FusionVariant& v, const EngineOptions& all) {
  EngineOptions o = all;
  if (v.without == "all") o.plan.fusions.clear();
  o.plan.fusions.erase(v.without);
  return o;
}

/// Rows of the decode phase, by operator and kernel.
void take_parts(const Profile& profile, FusionVariant* v) {
  for (const ProfilePhase& phase : profile.phases) {
    if (phase.phase != Phase::kDecode || phase.steps == 0) continue;
    const auto steps = static_cast<double>(phase.steps);
    for (const ProfileRow& r : phase.rows) {
      if (r.op == "host") continue;
      auto part = std::find_if(v->parts.begin(), v->parts.end(),
                               [&](const StepPart& p) { return p.op == r.op && p.kernel == r.kernel; });
      if (part == v->parts.end()) part = v->parts.insert(part, {r.op, r.kernel, 0, 0, 0, {}});
      const auto calls = static_cast<double>(r.calls) / steps;
      part->calls += calls, part->us += r.time_us / steps;
      part->bytes += static_cast<double>(r.cost.total_bytes()) / steps;
      for (const KernelLaunch& k : r.launches)
        if (std::find(part->launches.begin(), part->launches.end(), k) == part->launches.end())
          part->launches.push_back(k);
      v->launches += calls * static_cast<double>(std::max<size_t>(1, r.launches.size()));
      v->bytes += static_cast<double>(r.cost.total_bytes()) / steps;
    }
  }
}

Status observe(Session& session, const EngineOptions& options, const Machine& machine,
               const std::vector<int32_t>& prompt, const WorkloadOptions& workload, FusionVariant* v,
               const std::function<bool()>& interrupted) {
  RIDGE_ASSIGN(const auto engine, InferenceEngine::create(session.device(), session.model(), options));
  RIDGE_TRY(run_workload(*engine, prompt, workload, interrupted));
  Profiler profiler(false);
  engine->set_observer(&profiler);
  RIDGE_TRY(run_workload(*engine, prompt, workload, interrupted));
  take_parts(profiler.finish(machine, session.device().host_threads()), v);
  return {};
}

Status time(Session& session, const EngineOptions& all, const std::vector<int32_t>& prompt,
            const WorkloadOptions& workload, int rounds, const std::function<bool()>& interrupted,
            std::vector<FusionVariant>* variants) {
  std::vector<std::vector<double>> us(variants->size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < variants->size(); ++i) {
      RIDGE_TRY(check_stop());
      RIDGE_ASSIGN(const auto engine, InferenceEngine::create(session.device(), session.model(),
                                                              options_of((*variants)[i], all)));
      // Once to write plans and record graphs; what follows is timed.
      for (const bool timed : {false, true}) {
        RIDGE_ASSIGN(const double step, decode_round_us(*engine, prompt, workload, interrupted));
        if (timed) us[i].push_back(step);
      }
    }
  for (size_t i = 0; i < variants->size(); ++i) {
    FusionVariant& v = (*variants)[i];
    v.us_least = *std::min_element(us[i].begin(), us[i].end());
    v.us_most = *std::max_element(us[i].begin(), us[i].end());
    v.us = median(us[i]);
  }
  return {};
}

void part_text(std::string& out, const char* sign, const StepPart& p) {
  print_to(out, "    %s %-18s %-26s %6.0f calls %9.2f us %10.3f MB", sign, p.op.c_str(), p.kernel.c_str(),
           p.calls, p.us, p.bytes / 1e6);
  for (const KernelLaunch& k : p.launches)
    print_to(out,
             "\n        %-36s %6lld x %4lld, %3d registers, %lld B shared, %lld B local, occupancy %.1f %%",
             k.kernel.c_str(), static_cast<long long>(k.blocks), static_cast<long long>(k.threads),
             k.registers, static_cast<long long>(k.static_shared_bytes + k.dynamic_shared_bytes),
             static_cast<long long>(k.local_bytes), 100 * k.occupancy);
  out += "\n";
}

nlohmann::ordered_json part_json(const StepPart& p) {
  nlohmann::ordered_json j = {
      {"op", p.op}, {"kernel", p.kernel}, {"calls", p.calls}, {"us", p.us}, {"bytes", p.bytes}};
  if (!p.launches.empty()) j["launches"] = launches_json(p.launches);
  return j;
}

}  // namespace

std::vector<StepPart> parts_beyond(const FusionVariant& b, const FusionVariant& a) {
  std::vector<StepPart> out;
  for (const StepPart& p : b.parts) {
    const auto known = std::find_if(a.parts.begin(), a.parts.end(),
                                    [&](const StepPart& q) { return q.op == p.op && q.kernel == p.kernel; });
    StepPart more = p;
    if (known != a.parts.end()) more.calls -= known->calls, more.us -= known->us, more.bytes -= known->bytes;
    if (more.calls > 0.01) out.push_back(std::move(more));
  }
  return out;
}

Result<FusionBench> bench_fusion(Session& session, const EngineOptions& options, const Machine& machine,
                                 const WorkloadOptions& workload, int rounds,
                                 const std::function<bool()>& interrupted) {
  RIDGE_ASSIGN(const auto prompt, workload_prompt(session, workload));
  FusionBench bench;
  bench.rounds = rounds;
  bench.workload = describe_workload(session, prompt, workload);
  bench.variants.emplace_back();
  RIDGE_TRY(observe(session, options, machine, prompt, workload, &bench.variants[0], interrupted));
  std::set<std::string> held;
  for (const StepPart& p : bench.variants[0].parts)
    if (options.plan.fusions.count(p.op) > 0) held.insert(p.op);
  if (held.empty())
    return declined("a decode step of ", session.device().target().backend, " holds no fused operator here");
  held.insert("all");
  for (const std::string& name : held) {
    FusionVariant v;
    v.without = name;
    RIDGE_TRY(check_stop());
    RIDGE_TRY(observe(session, options_of(v, options), machine, prompt, workload, &v, interrupted));
    bench.variants.push_back(std::move(v));
  }
  RIDGE_TRY(time(session, options, prompt, workload, rounds, interrupted, &bench.variants));
  return bench;
}

std::string fusion_text(const FusionBench& bench) {
  std::string out;
  const Workload& w = bench.workload;
  print_to(out,
           "%s on %s: decode step, batch %lld, prompt %lld, answer %lld; times are medians (range) of %d "
           "rounds, in "
           "turns\n",
           w.model.c_str(), w.device.c_str(), static_cast<long long>(w.batch),
           static_cast<long long>(w.prompt_tokens), static_cast<long long>(w.output_tokens), bench.rounds);
  const FusionVariant& all = bench.variants[0];
  print_to(out, "  %-30s %10s %22s %9s %9s %10s\n", "fusions", "us/step", "range", "x all", "launches",
           "MB/step");
  for (const FusionVariant& v : bench.variants) {
    const std::string name = v.without.empty() ? "all" : v.without == "all" ? "none" : "all but " + v.without;
    print_to(out, "  %-30s %10.2f %10.2f ..%10.2f %9.3f %9.0f %10.2f\n", name.c_str(), v.us, v.us_least,
             v.us_most, v.us / all.us, v.launches, v.bytes / 1e6);
  }
  for (const FusionVariant& v : bench.variants) {
    if (v.without.empty()) continue;
    print_to(out, "\n  %s, a step with (+) and without (-):\n",
             v.without == "all" ? "all together" : v.without.c_str());
    for (const StepPart& p : parts_beyond(all, v)) part_text(out, "+", p);
    for (const StepPart& p : parts_beyond(v, all)) part_text(out, "-", p);
  }
  return out;
}

std::string fusion_json(const FusionBench& bench, const std::string& command) {
  using Json = nlohmann::ordered_json;
  Json j;
  const FusionVariant& all = bench.variants[0];
  for (const FusionVariant& v : bench.variants) {
    Json one = {{"without", v.without},       {"step_us", v.us},  {"step_us_range", {v.us_least, v.us_most}},
                {"launches", v.launches},     {"bytes", v.bytes}, {"with_it", Json::array()},
                {"without_it", Json::array()}};
    for (const StepPart& p : parts_beyond(all, v)) one["with_it"].push_back(part_json(p));
    for (const StepPart& p : parts_beyond(v, all)) one["without_it"].push_back(part_json(p));
    j["variants"].push_back(one);
  }
  j["rounds"] = bench.rounds, j["workload"] = workload_json(bench.workload);
  j["provenance"] = provenance_json(command, bench.rounds);
  return j.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge
