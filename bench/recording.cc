// What recording the account costs: decode steps with the Profiler attached beside steps without, in blocks
// of off, on, on, off within one answer; as a control off beside off in the same blocks; and how much of the
// cost is the stamps alone, with an observer that keeps nothing. One JSON object on stdout.
//
//   recording MODEL.gguf [threads, default 2] [answers, default 12] [output tokens, default 128]

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "account/recorder.h"
#include "advise/advise.h"
#include "base/pressure.h"
#include "lab/statistics.h"
#include "lab/workload.h"
#include "lab/workload_json.h"

namespace ridge {
namespace {

constexpr int64_t kPrompt = 16;
constexpr double kConfidence = 0.95;
// Steps of one arm. Short, so that what else runs falls on all four arms of a block alike (14 ms at 3 ms a
// step). Before them one more of the same arm is not timed: it still finds what the arm before left behind,
// such as workers that fell asleep.
constexpr int64_t kSteps = 4, kBlock = 4 * (1 + kSteps);

/// Sees every step and keeps nothing: what is left is the stamps.
struct Nothing final : StepObserver {
  void on_step(const StepFacts&, const StepPlan&) override {}
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
};

/// The observer of an answer's arm "on"; a new one for each answer, as a profile has.
using Attach = std::function<std::unique_ptr<StepObserver>()>;

/// Recorded time over unrecorded time, by block.
struct Costs {
  std::vector<double> ratios, off_us, on_us;
};

class Measurement {
 public:
  Measurement(InferenceEngine& engine, std::vector<int32_t> prompt, int64_t output)
      : engine_(engine), prompt_(std::move(prompt)), output_(output) {}

  /// One answer, in blocks, their ratios added to `costs`.
  Status answer(const Attach& attach, Costs* costs) {
    Request request;
    request.prompt = prompt_;
    // The first step is the prefill.
    request.max_new_tokens = output_ + 1;
    RIDGE_TRY(engine_.submit(std::move(request)).status());
    RIDGE_TRY(step());
    const auto observer = attach ? attach() : nullptr;
    for (int64_t left = output_; left >= kBlock; left -= kBlock) {
      double us[4] = {};
      for (int arm = 0; arm < 4; ++arm) {
        engine_.set_observer(arm == 1 || arm == 2 ? observer.get() : nullptr);
        RIDGE_TRY(step());
        const int64_t begin = now_ns();
        for (int64_t s = 0; s < kSteps; ++s) RIDGE_TRY(step());
        us[arm] = static_cast<double>(now_ns() - begin) / 1e3 / kSteps;
      }
      // A step grows with its context: so does the mean of the outer arms as that of the inner.
      costs->ratios.push_back((us[1] + us[2]) / (us[0] + us[3]));
      costs->off_us.push_back((us[0] + us[3]) / 2), costs->on_us.push_back((us[1] + us[2]) / 2);
    }
    engine_.set_observer(nullptr);
    while (!engine_.idle()) RIDGE_TRY(step());
    return {};
  }

 private:
  Status step() {
    RIDGE_ASSIGN(const auto events, engine_.step());
    for (const TokenEvent& e : events)
      if (e.finish == Finish::kError) return e.error;
    return {};
  }
  InferenceEngine& engine_;
  std::vector<int32_t> prompt_;
  int64_t output_;
};

/// In percent: the median over blocks, and its interval.
Result<nlohmann::ordered_json> percents(const Costs& c) {
  Interval found;
  if (!median_interval(c.ratios, kConfidence, &found))
    return invalid_argument(c.ratios.size(), " blocks make no interval: ask for more answers or tokens");
  return nlohmann::ordered_json{{"median", 100 * (found.value - 1)}, {"low", 100 * (found.low - 1)},
                                {"high", 100 * (found.high - 1)},    {"confidence", kConfidence},
                                {"blocks", c.ratios.size()},         {"off_us", median(c.off_us)},
                                {"on_us", median(c.on_us)}};
}

Status measure(const char* model, int threads, int answers, int64_t output) {
  SessionOptions options;
  options.device.cpu.threads = threads;
  for (const FusedOperator& f : fused_operators()) options.engine.plan.fusions.insert(f.name);
  options.engine.kv.context = kPrompt + output + 1;
  RIDGE_ASSIGN(const auto session, Session::open(model, options));
  WorkloadOptions workload;
  workload.prompt_tokens = kPrompt, workload.output_tokens = output;
  RIDGE_ASSIGN(const auto prompt, workload_prompt(*session, workload));
  Measurement m(session->engine(), prompt, output);
  const Attach record = [] { return std::make_unique<Profiler>(); };
  const Attach stamp = [] { return std::make_unique<Nothing>(); };
  Costs cost, stamps, control, unused;
  // Unseen: plans are written, memory is touched.
  for (const Attach& a : {record, stamp, Attach()}) RIDGE_TRY(m.answer(a, &unused));
  const int64_t begin = now_ns();
  const double waited = waited_for_cores_us();
  // In turns: all three see the same minutes.
  for (int a = 0; a < answers; ++a) {
    RIDGE_TRY(m.answer(record, &cost));
    RIDGE_TRY(m.answer(nullptr, &control));
    RIDGE_TRY(m.answer(stamp, &stamps));
  }
  nlohmann::ordered_json out;
  RIDGE_ASSIGN(out["recording_percent"], percents(cost));
  RIDGE_ASSIGN(out["stamps_percent"], percents(stamps));
  RIDGE_ASSIGN(out["control_percent"], percents(control));
  if (waited >= 0)
    out["pressure"] =
        std::min(1.0, (waited_for_cores_us() - waited) * 1e3 / static_cast<double>(now_ns() - begin));
  out["workload"] = workload_json(describe_workload(*session, prompt, workload));
  std::printf("%s\n", out.dump().c_str());
  return {};
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  const int threads = number(2, 2), answers = number(3, 12), output = number(4, 128);
  if (argc < 2 || threads < 1 || answers < 1 || output < 1) {
    std::fprintf(stderr, "usage: recording MODEL.gguf [threads] [answers] [output tokens]\n");
    return 2;
  }
  const ridge::Status status = ridge::measure(argv[1], threads, answers, output);
  if (!status.ok()) std::fprintf(stderr, "recording: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
