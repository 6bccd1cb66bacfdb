// ridge bench: tokens a second of a model, or the speed of one operator at any shape.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "account/recorder.h"
#include "account/verdict.h"
#include "base/stop.h"
#include "bench_parts.h"
#include "lab/formats_of.h"
#include "lab/provenance_json.h"
#include "lab/statistics.h"
#include "lab/workload_json.h"
#include "refusals.h"
#include "shape.h"
#include "verbs.h"

namespace ridge::app {

namespace {

using Json = nlohmann::ordered_json;

struct BenchChoices {
  CommonOptions common;
  WorkloadOptions workload;
  std::string op, machine;
  std::vector<int64_t> shape;
  std::vector<std::string> dtypes;
  bool deep = false, reference = false;
  int runs = 5;
  double seconds = 0.2;
};

/// Prompt and output apart, `runs` times after a first run that is shown apart: medians and the range.
Status bench_model(const BenchChoices& o) {
  RIDGE_ASSIGN(const SessionOptions options, o.common.session(o.workload));
  RIDGE_ASSIGN(const auto session, Session::open(o.common.model, options));
  RIDGE_ASSIGN(const auto prompt, workload_prompt(*session, o.workload));
  std::vector<double> pp, tg;
  for (int run = -1; run < o.runs; ++run) {
    WorkloadOptions w = o.workload;
    w.output_tokens = 1;
    RIDGE_TRY(check_stop());
    int64_t begin = now_ns();
    RIDGE_TRY(run_workload(session->engine(), prompt, w, interrupted));
    const double prefill_s = double(now_ns() - begin) / 1e9;
    if (o.deep) {
      RIDGE_ASSIGN(const double us, decode_round_us(session->engine(), prompt, o.workload, interrupted));
      pp.push_back(double(prompt.size()) * double(w.batch) / prefill_s);
      tg.push_back(double(w.batch) / us * 1e6);
      continue;
    }
    // Decode alone, from a short prompt, as peers' benchmarks do it.
    w.output_tokens = o.workload.output_tokens;
    const std::vector<int32_t> one(prompt.begin(), prompt.begin() + 1);
    begin = now_ns();
    RIDGE_TRY(run_workload(session->engine(), one, w, interrupted));
    const double decode_s = double(now_ns() - begin) / 1e9;
    pp.push_back(double(prompt.size()) * double(w.batch) / prefill_s);
    tg.push_back(double(w.output_tokens) * double(w.batch) / decode_s);
  }
  // Each figure's own: the prompt and its first token, and what came after the prompt or its first token.
  Workload w = describe_workload(*session, prompt, o.workload), after = w;
  w.output_tokens = 1;
  if (!o.deep) after.prompt_tokens = 1;
  const Runs prefill = runs_of(pp), decode = runs_of(tg);
  if (o.common.json) {
    Json j = {{"pp", prefill.value}, {"pp_range", {prefill.least, prefill.most}}, {"pp_first", prefill.first},
              {"tg", decode.value},  {"tg_range", {decode.least, decode.most}},   {"tg_first", decode.first},
              {"runs", o.runs}};
    // In their order: one that stands out is seen with its rank.
    j["pp_runs"] = pp, j["tg_runs"] = tg;
    j["workload"] = workload_json(w), j["tg_workload"] = workload_json(after);
    j["provenance"] = provenance_json(command_line(), o.runs);
    std::printf("%s\n", j.dump().c_str());
  } else {
    std::printf("%s: weights %s, KV %s, activations %s, %s, batch %lld\n", w.model.c_str(),
                w.weight_format.c_str(), w.kv_format.c_str(), w.activation_format.c_str(), w.device.c_str(),
                static_cast<long long>(w.batch));
    std::printf("  prefill %lld tokens: %.1f tokens/s (%.1f to %.1f; first run %.1f)\n",
                static_cast<long long>(w.prompt_tokens), prefill.value, prefill.least, prefill.most,
                prefill.first);
    std::printf(
        "  decode  %lld tokens after %lld: %.1f tokens/s (%.1f to %.1f; first run %.1f), median of %d\n",
        static_cast<long long>(after.output_tokens), static_cast<long long>(after.prompt_tokens),
        decode.value, decode.least, decode.most, decode.first, o.runs);
  }
  return {};
}

/// The cost as it is when no operand lies nearer than the weights do.
Cost all_far(Cost c) {
  constexpr auto kFar = static_cast<size_t>(DataClass::kWeights);
  for (const DataClass near : {DataClass::kActivations, DataClass::kIndices}) {
    const auto from = static_cast<size_t>(near);
    c.read_bytes[kFar] += std::exchange(c.read_bytes[from], 0);
    c.written_bytes[kFar] += std::exchange(c.written_bytes[from], 0);
  }
  return c;
}

bool has_operand(const AnyOperator& op, const std::string& name) {
  return std::any_of(op.operands().begin(), op.operands().end(),
                     [&](const auto& o) { return o.name == name; });
}

/// --dtype, read.
Result<std::map<std::string, DType>> dtypes_of(const BenchChoices& o, const AnyOperator& op) {
  std::map<std::string, DType> dtypes;
  for (const std::string& d : o.dtypes) {
    const size_t equals = d.find('=');
    if (equals == std::string::npos)
      return invalid_argument("--dtype ", printable(d), ": use operand=type, as in w=q4_1");
    bool known = false;
    for (int t = 0; t < kDTypeCount; ++t)
      if (d.substr(equals + 1) == dtype_name(static_cast<DType>(t)))
        dtypes[d.substr(0, equals)] = static_cast<DType>(t), known = true;
    if (!known)
      return invalid_argument("--dtype ", printable(d), ": there is no type ",
                              printable(d.substr(equals + 1)));
    if (!has_operand(op, d.substr(0, equals)))
      return invalid_argument("--dtype ", printable(d), ": ", op.name(), " has no operand ",
                              printable(d.substr(0, equals)));
  }
  return dtypes;
}

/// With the names of the columns before the first: what is refused has printed nothing.
void print_row(const Json& r, bool first) {
  if (first)
    std::printf("%-18s %-26s %-14s %-24s %10s %8s %9s %9s %-8s %5s\n", "operator", "shape", "formats",
                "kernel", "us", "GB/s", "GFLOP/s", "limit us", "bound", "att.");
  std::printf("%-18s %-26s %-14s %-24s %10.2f %8.1f %9.1f %9.2f %-8s %4.0f%% %s\n",
              r["op"].get<std::string>().c_str(), r["shape"].get<std::string>().c_str(),
              r["formats"].get<std::string>().c_str(), r["kernel"].get<std::string>().c_str(),
              r["us"].get<double>(), r["gb_s"].get<double>(), r["gflop_s"].get<double>(),
              r["limit_us"].get<double>(), r["bound"].get<std::string>().c_str(),
              100 * r["attainment"].get<double>(), r["defect"].get<std::string>().c_str());
}

/// What --op names.
Result<std::vector<AnyOperator*>> operators_of(const BenchChoices& o) {
  if (o.op == "all" && !(o.shape.empty() && o.dtypes.empty()))
    return invalid_argument("--shape and --dtype go with one operator: name it with --op");
  if (o.op == "all") return operators();
  AnyOperator* const one = find_operator(o.op);
  if (one != nullptr) return std::vector<AnyOperator*>{one};
  std::string names;
  for (const AnyOperator* op : operators()) names += text(names.empty() ? "" : ", ", op->name());
  return invalid_argument("operator ", printable(o.op), " does not exist; there are ", names);
}

/// An operator, and how it is called.
struct Timed {
  AnyOperator* op;
  std::map<std::string, DType> dtypes;
  std::vector<std::vector<int64_t>> shapes;
  bool beside = false;  // by types that nobody asked for: where no kernel takes them, nothing is missing
};

/// How models call an operator of weights or of the cache, beside the types that its description names first:
/// a cache in f16, and linear at each type of weights; on the CPU with activations in 8 bits where they are
/// blocks.
std::vector<std::map<std::string, DType>> common_types(const AnyOperator& op, bool on_cpu) {
  std::vector<std::map<std::string, DType>> all;
  if (has_operand(op, "k_pages") && has_operand(op, "v_pages"))
    all.push_back({{"k_pages", kF16}, {"v_pages", kF16}});
  if (std::string_view(op.name()) != "linear") return all;
  for (const OperandInfo& o : op.operands())
    for (const DType type : std::string_view(o.name) == "w" ? o.dtypes : std::vector<DType>())
      if (is_block_quantized(type) && on_cpu)
        all.push_back({{"w", type}, {"x", kI8}, {"x_scale", kF32}});
      else if (type != o.dtypes.front())
        all.push_back({{"w", type}});
  return all;
}

Result<std::vector<Timed>> all_timed(const BenchChoices& o, bool on_cpu) {
  RIDGE_ASSIGN(const auto chosen, operators_of(o));
  std::vector<Timed> all;
  for (AnyOperator* op : chosen) {
    Timed t{op, {}, op->bench_cases()};
    RIDGE_ASSIGN(t.dtypes, dtypes_of(o, *op));
    if (!o.shape.empty()) {
      RIDGE_ASSIGN(auto shape, complete_shape(op->name(), op->case_dims(), o.shape));
      t.shapes = {std::move(shape)};
    }
    const bool plain = o.dtypes.empty() && o.shape.empty() && !t.shapes.empty();
    all.push_back(std::move(t));
    // Types that no option names: each once, at the first shape.
    for (auto& types : plain ? common_types(*op, on_cpu) : std::vector<std::map<std::string, DType>>())
      all.push_back({op, std::move(types), {all.back().shapes.front()}, true});
  }
  return all;
}

/// What was asked for: no tokens, but calls.
Json operators_workload(const BenchChoices& o, const std::string& device) {
  Json w = {{"op", o.op}, {"device", device}, {"seconds", o.seconds}, {"reference", o.reference}};
  if (!o.shape.empty()) w["shape"] = o.shape;
  if (!o.dtypes.empty()) w["dtype"] = o.dtypes;
  return w;
}

Status bench_operators(const BenchChoices& o) {
  RIDGE_ASSIGN(const SessionOptions options, o.common.session());
  if (!o.common.model.empty())
    return invalid_argument("--op times an operator and MODEL a model, which is ", printable(o.common.model),
                            ": give one of them");
  const bool on_cpu = options.device.backend == "cpu";
  if (!on_cpu && o.reference)
    return invalid_argument("--reference is for the CPU, where references run: leave it out");
  RIDGE_ASSIGN(const std::vector<Timed> all, all_timed(o, on_cpu));
  RIDGE_ASSIGN(const auto device, create_device(options.device));
  // A machine that has to be measured takes a minute: not before a call that is refused.
  std::optional<Machine> machine;
  Status no_machine;  // what it lacks is no operator's to decline
  const MachineOf machine_of = [&]() -> Result<const Machine*> {
    if (!machine) {
      auto found = machine_for(o.machine, *device);
      if (!found.ok()) return no_machine = found.status();
      machine = found.take();
    }
    return &*machine;
  };
  if (!o.machine.empty()) RIDGE_TRY(machine_of().status());
  Json rows = Json::array(), left_out = Json::array();
  for (const Timed& t : all) {
    for (const auto& shape : t.shapes) {
      const auto made = on_cpu ? bench_call(static_cast<CpuDevice&>(*device), machine_of, *t.op, shape,
                                            t.dtypes, o.seconds, o.reference)
                               : bench_device_call(*device, machine_of, *t.op, shape, t.dtypes, o.seconds);
      RIDGE_TRY(no_machine);
      if (made.status().code() == Code::kDeclined) {
        if (t.beside) break;
        if (o.op != "all") return invalid_argument(made.status().message());
        say(text("left out: ", made.status().message()));
        left_out.push_back(t.op->name());
        break;
      }
      RIDGE_TRY(made.status());
      const Json& r = *made;
      rows.push_back(r);
      if (o.common.json) continue;
      print_row(r, rows.size() == 1);
      RIDGE_TRY(check_output());
    }
  }
  if (!o.common.json) return {};
  RIDGE_ASSIGN(const Machine* const measured, machine_of());
  std::printf("%s\n", Json{{"machine", measured->cpu},
                           {"isa", measured->isa},
                           {"threads", device->host_threads()},
                           {"operators", rows},
                           {"left_out", left_out},
                           {"workload", operators_workload(o, device->describe())},
                           {"provenance", provenance_json(command_line(), 1)}}
                          .dump(1)
                          .c_str());
  return {};
}

/// What goes with what: a model or an operator, and the subcommand before its model.
class BenchHelp : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: ridge bench [OPTIONS] MODEL\n       ridge bench [OPTIONS] --op OPERATOR\n"
           "       ridge bench fusion [OPTIONS] MODEL\n";
  }
};

}  // namespace

Json operator_row(const AnyOperator& op, const std::vector<int64_t>& shape, const AnyCall& call,
                  const Selection& selection, const std::vector<double>& us, int64_t reuse_bytes,
                  const ThreadCeilings& ceilings) {
  Occasion occasion;
  occasion.measured_us = median(us);
  occasion.reuse_bytes = reuse_bytes;
  const Cost cost = op.cost(selection, call.args.get());
  // All classes, activations too, were last touched a whole rotation ago.
  const Verdict v = judge(all_far(cost), ceilings, occasion);
  const auto most = std::max_element(us.begin(), us.end());
  return Json{{"op", op.name()},
              {"shape", shape_text(op.name(), op.case_dims(), shape)},
              {"formats", formats_of(call)},
              {"kernel", op.kernel_name(selection)},
              {"us", occasion.measured_us},
              {"us_least", *std::min_element(us.begin(), us.end())},
              {"us_most", *most},
              {"us_most_run", most - us.begin() + 1},
              {"runs", us.size()},
              {"gb_s", double(cost.total_bytes()) / occasion.measured_us / 1e3},
              {"gflop_s", double(cost.total_flops()) / occasion.measured_us / 1e3},
              {"limit_us", v.limit_us},
              {"bound", bound_name(v.bound)},
              {"attainment", v.attainment},
              {"defect", defect_text(v)}};
}

Command add_bench(CLI::App& cli) {
  auto o = std::make_shared<BenchChoices>();
  CLI::App* sub =
      cli.add_subcommand("bench", "Time a model's prefill and decode, or one operator at any shape");
  o->common.add_to(*sub, false);
  add_workload_options(*sub, &o->workload);
  sub->add_flag("--deep", o->deep, "Decode after the whole prompt, not after its first token");
  sub->add_option("--op", o->op, "An operator's name, or 'all'");
  sub->add_flag("--reference", o->reference, "Time the reference where no kernel takes the operator");
  sub->add_option("--shape", o->shape, "Its dims, as in --op linear --shape 1,4096,4096 (tokens, out, in)")
      ->delimiter(',');
  sub->add_option(
         "--dtype", o->dtypes,
         "Types of operands, as in w=q4_1,x=i8,x_scale=f32; default: what the operator's description "
         "names first, and without --shape also what models use: each type of weights, a cache in f16")
      ->delimiter(',');
  sub->add_option("--runs", o->runs, "Runs of a model")->capture_default_str()->check(CLI::Range(1, 1000));
  sub->add_option("--seconds", o->seconds, "Time for one operator and shape")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 600.0));
  sub->add_option("--machine", o->machine, "Machine file of 'ridge probe'");
  sub->footer(
      "Examples:\n  ridge bench model.gguf --prompt-tokens 512 --output-tokens 128\n  ridge bench --op all\n "
      " ridge bench --op linear --shape 1,4096,4096 --dtype w=q4_1,x=i8,x_scale=f32 --json");
  const Command fusion = add_bench_fusion(*sub);
  sub->formatter(std::make_shared<BenchHelp>());  // not that of fusion
  return {sub, [o, sub, fusion]() -> Status {
            if (fusion.cli->parsed()) return fusion.chosen();
            if (!o->op.empty()) {
              RIDGE_TRY(refuse_given(
                  *sub,
                  {"--synthetic", "--activations", "--kv", "--context", "--page-size", "--prefill-tokens",
                   "--no-fuse", "--assume-pre", "--no-graphs", "--no-look-ahead", "--prompt",
                   "--prompt-tokens", "--output-tokens", "--batch", "--deep", "--runs"},
                  "for a model, not for --op"));
              return bench_operators(*o);
            }
            RIDGE_TRY(refuse_given(*sub, {"--shape", "--dtype", "--reference", "--seconds", "--machine"},
                                   "for an operator, which --op names"));
            if (o->common.model.empty())
              return invalid_argument("bench needs a model, or --op with an operator's name or 'all'");
            return bench_model(*o);
          }};
}

}  // namespace ridge::app
