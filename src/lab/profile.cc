#include "lab/profile.h"

#include <algorithm>

#include "account/recorder.h"
#include "lab/formats_of.h"

namespace ridge {

double ProfilePhase::loss_us(Loss loss) const {
  double sum = 0;
  for (const ProfileRow& r : rows) sum += r.verdict.loss(loss);
  return sum;
}
double ProfilePhase::limit_us() const {
  double sum = 0;
  for (const ProfileRow& r : rows) sum += r.verdict.limit_us;
  return sum;
}

Bound ProfilePhase::bound() const {
  double by[4] = {};
  for (const ProfileRow& r : rows) by[static_cast<int>(r.verdict.bound)] += r.verdict.limit_us;
  return static_cast<Bound>(std::max_element(by + 1, by + 4) - by);
}

size_t Profiler::row(Collected& c, Key key, const AnyCall* call) {
  const auto [found, fresh] = c.index.emplace(key, c.phase.rows.size());
  if (fresh) {
    ProfileRow r;
    r.op = std::move(key.op), r.kernel = std::move(key.kernel), r.shape = std::move(key.shape),
    r.formats = std::move(key.formats);
    if (call != nullptr) r.pace_dims = call->op->pace_dims(call->args.get());
    r.occasion.calls = 0;
    c.phase.rows.push_back(std::move(r));
  }
  return found->second;
}

void Profiler::on_step(const StepFacts& facts, const StepPlan& plan) {
  Collected& c = phases_[facts.phase];
  c.phase.phase = facts.phase;
  ++c.phase.steps;
  c.phase.tokens += facts.prefill_tokens + facts.decode_tokens;
  c.phase.wall_us += static_cast<double>(facts.end_ns - facts.begin_ns) / 1e3;

  const auto& calls = plan.calls();
  PriceBook& book = books_.try_emplace({facts.phase, plan.id()}, plan).first->second;
  StepSlice slice{facts.phase, facts.begin_ns, facts.end_ns, facts.prefill_tokens + facts.decode_tokens, {}};
  if (keep_slices_) slice.calls.reserve(calls.size());
  touched_.clear();
  int64_t before = facts.calls_begin_ns, far_bytes = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const CallTime& time = facts.calls[i];
    PriceBook::Group& priced = book.price(plan, i);
    if (priced.row == PriceBook::kNone)
      priced.row =
          row(c, {calls[i].call.op->name(), priced.kernel, priced.shape, priced.formats}, &calls[i].call);
    ProfileRow& r = c.phase.rows[priced.row];
    ++r.calls;
    r.time_us += static_cast<double>(time.end_ns - before) / 1e3;
    r.cost += *priced.cost;
    r.occasion.barrier_us += time.meter.barrier_ns / 1e3;
    r.occasion.imbalance_us += time.meter.imbalance_ns / 1e3;
    r.occasion.occupancy_us += time.meter.occupancy_ns / 1e3;
    for (const DataClass d : {DataClass::kWeights, DataClass::kScales, DataClass::kKv})
      far_bytes += priced.cost->read_bytes[static_cast<size_t>(d)];
    touched_.push_back(priced.row);
    if (keep_slices_)
      slice.calls.push_back({before, time.end_ns, book.name_of(plan, i, priced), priced.cost});
    before = time.end_ns;
  }
  // Weights and cache come round once a step: everything far that the step reads lies between two uses.
  for (const size_t r : touched_)
    c.phase.rows[r].occasion.reuse_bytes = std::max(c.phase.rows[r].occasion.reuse_bytes, far_bytes);
  ProfileRow& host = c.phase.rows[row(c, {"host", "", "schedule, indices, tokens", ""}, nullptr)];
  ++host.calls;
  host.time_us += static_cast<double>(facts.calls_begin_ns - facts.begin_ns + facts.end_ns - before) / 1e3;
  if (keep_slices_) steps_.push_back(std::move(slice));
}

void Profiler::on_stage(int64_t request, Stage stage, int64_t begin_ns, int64_t end_ns) {
  if (stage == Stage::kQueue && tokenize_end_ns_ != 0)
    stages_.push_back({request, Stage::kTokenize, tokenize_begin_ns_, tokenize_end_ns_});
  stages_.push_back({request, stage, begin_ns, end_ns});
}

void Profiler::clear() {
  phases_.clear(), books_.clear(), stages_.clear(), steps_.clear();
}

Profile Profiler::finish(const Machine& machine, int threads) const {
  Profile p;
  p.machine = machine, p.threads = threads, p.stages = stages_, p.steps = steps_;
  const ThreadCeilings& ceilings = machine.at(threads);
  for (const auto& [phase, collected] : phases_) {
    ProfilePhase out = collected.phase;
    // The host's row last, whatever came first.
    std::stable_partition(out.rows.begin(), out.rows.end(),
                          [](const ProfileRow& r) { return r.op != "host"; });
    for (ProfileRow& r : out.rows) {
      r.occasion.measured_us = r.time_us, r.occasion.calls = r.calls;
      if (r.op == "host") {
        r.verdict.loss(Loss::kHostGap) = r.time_us;
        continue;
      }
      const auto calls = static_cast<double>(r.calls);
      r.occasion.kernel_us = calls * kernel_us(machine, {r.op, r.kernel, r.formats, r.pace_dims},
                                               pace_work(r.cost) / calls, threads);
      r.occasion.launch_us = static_cast<double>(r.cost.launches) * machine.launch_us();
      r.verdict = judge(r.cost, ceilings, r.occasion);
    }
    p.phases.push_back(std::move(out));
  }
  p.clock_errors = clock_errors(stages_), p.tpot = token_times(stages_);
  if (!stages_.empty()) {
    const RequestTimes first = request_times(stages_, stages_.front().request);
    p.ttft_us = first.ttft_us, p.tpot_us = first.tpot_us;
  }
  return p;
}

}  // namespace ridge
