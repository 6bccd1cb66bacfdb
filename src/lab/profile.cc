#include "lab/profile.h"

#include <algorithm>

#include "account/recorder.h"
#include "lab/formats_of.h"
#include "lab/probe_loops.h"
#include "lab/statistics.h"

namespace ridge {

double Profile::wall_us() const {
  double sum = 0;
  for (const ProfilePhase& phase : phases) sum += phase.wall_us;
  return sum;
}

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

Profiler::Price Profiler::price(Collected& c, Planned& planned, const AnyCall& call, size_t index,
                                const void* args) {
  PriceBook::Group& priced = planned.book.price(index, args);
  if (priced.row == PriceBook::kNone) {
    priced.row = row(c, {call.op->name(), priced.kernel, priced.shape, priced.formats}, &call);
    ProfileRow& r = c.phase.rows[priced.row];
    if (r.launches.empty()) r.launches = priced.launches;
    r.varies = planned.book.place_of(index) != PriceBook::kNone, r.fixed_shape = priced.fixed_shape;
  }
  return {priced.row, priced.cost};
}

/// What a step leaves behind is noted, and added up when the run is over: between two steps that takes longer
/// than the device's threads wait without falling asleep, and waking them would be a cost of the recording.
void Profiler::on_step(const StepFacts& facts, const StepPlan& plan) {
  Collected& c = phases_[facts.phase];
  c.phase.phase = facts.phase;
  Planned& planned = plans_.try_emplace({facts.phase, plan.id()}, plan).first->second;
  NotedStep note;
  note.planned = &planned;
  note.phase = facts.phase, note.tokens = facts.prefill_tokens + facts.decode_tokens;
  note.begin_ns = facts.begin_ns, note.calls_begin_ns = facts.calls_begin_ns, note.end_ns = facts.end_ns;
  note.paused_ns = pauses_.empty() ? 0 : pauses_.back().all_ns;
  note.times.reserve(facts.calls.size());
  for (const CallTime& t : facts.calls)
    note.times.push_back({t.end_ns, static_cast<float>(t.meter.wait_ns),
                          static_cast<float>(t.meter.barrier_ns), static_cast<float>(t.meter.imbalance_ns),
                          static_cast<float>(t.meter.occupancy_ns)});
  if (planned.steps++ == 0) {
    add_up();  // the rows of earlier steps come first
    for (size_t i = 0; i < plan.calls().size(); ++i) {
      const AnyCall& call = plan.calls()[i].call;
      planned.calls.push_back(price(c, planned, call, i, call.args.get()));
    }
    for (const size_t i : planned.book.varying()) planned.varying.push_back(plan.calls()[i].call);
  }
  note.varied.reserve(planned.varying.size());
  for (const AnyCall& call : planned.varying) note.varied.push_back(call.op->args_of_now(call.args.get()));
  noted_.push_back(std::move(note));
  constexpr size_t kMostNoted = 4096;  // of 300 calls each: 30 MB
  if (noted_.size() >= kMostNoted) add_up();
  if (far_) pause_to_read(planned, plan);
}

void Profiler::add_up() {
  for (const NotedStep& note : noted_) add(note);
  noted_.clear();
}

void Profiler::add(const NotedStep& note) {
  Collected& c = phases_[note.phase];
  ++c.phase.steps;
  c.phase.tokens += note.tokens;
  c.phase.wall_us += static_cast<double>(note.end_ns - note.begin_ns) / 1e3;
  if (last_end_ns_ != 0)
    c.phase.between_us += static_cast<double>(note.begin_ns - note.paused_ns - last_end_ns_) / 1e3;
  last_end_ns_ = note.end_ns - note.paused_ns;
  StepSlice slice{note.phase, note.begin_ns - note.paused_ns, note.end_ns - note.paused_ns, note.tokens, {}};
  if (keep_slices_) slice.calls.reserve(note.times.size());
  PriceBook& book = note.planned->book;
  std::vector<Price> varied;
  for (size_t v = 0; v < note.varied.size(); ++v)
    varied.push_back(
        price(c, *note.planned, note.planned->varying[v], book.varying()[v], note.varied[v].get()));
  int64_t before = note.calls_begin_ns, far_bytes = 0;
  std::vector<size_t> touched;
  for (size_t i = 0; i < note.times.size(); ++i) {
    const NotedTime& time = note.times[i];
    const size_t place = book.place_of(i);
    const Price& call = place == PriceBook::kNone ? note.planned->calls[i] : varied[place];
    ProfileRow& r = c.phase.rows[call.row];
    ++r.calls;
    r.time_us += static_cast<double>(time.end_ns - before) / 1e3;
    r.cost += *call.cost;
    r.occasion.wait_us += static_cast<double>(time.wait_ns) / 1e3;
    r.occasion.barrier_us += static_cast<double>(time.barrier_ns) / 1e3;
    r.occasion.imbalance_us += static_cast<double>(time.imbalance_ns) / 1e3;
    r.occasion.occupancy_us += static_cast<double>(time.occupancy_ns) / 1e3;
    for (const DataClass d : {DataClass::kWeights, DataClass::kScales, DataClass::kKv})
      far_bytes += call.cost->read_bytes[static_cast<size_t>(d)];
    touched.push_back(call.row);
    if (keep_slices_)
      slice.calls.push_back(
          {before - note.paused_ns, time.end_ns - note.paused_ns, book.name_of(i, r.shape), call.cost});
    before = time.end_ns;
  }
  // Weights and cache come round once a step: everything far that the step reads lies between two uses.
  for (const size_t r : touched)
    c.phase.rows[r].occasion.reuse_bytes = std::max(c.phase.rows[r].occasion.reuse_bytes, far_bytes);
  c.phase.drift.bytes = std::max(c.phase.drift.bytes, far_bytes);
  ProfileRow& host = c.phase.rows[row(c, {"host", "", "schedule, indices, tokens", ""}, nullptr)];
  ++host.calls;
  host.time_us += static_cast<double>(note.calls_begin_ns - note.begin_ns + note.end_ns - before) / 1e3;
  if (keep_slices_) steps_.push_back(std::move(slice));
}

/// Some at once for a phase that is a single step, then one in a few steps: often enough to see the same
/// minutes as the steps do, rarely enough to cost a tenth of their time.
void Profiler::pause_to_read(Planned& planned, const StepPlan& plan) {
  constexpr int64_t kFirst = 3, kEvery = 8;
  if (planned.steps != 1 && planned.steps % kEvery != 0) return;
  const int64_t begin = now_ns();
  const int64_t wanted = planned.steps == 1 ? kFirst : 1;
  for (int64_t taken = 0, tries = 2 * wanted; taken < wanted && tries > 0; --tries) {
    FarReading reading = far_(plan);
    if (reading.disturbed) {
      ++planned.disturbed;
    } else {
      planned.readings.push_back(std::move(reading));
      ++taken;
    }
  }
  const int64_t end = now_ns(), before = pauses_.empty() ? 0 : pauses_.back().all_ns;
  pauses_.push_back({end, before + end - begin});
}

/// Of an instant on now_ns()'s clock, that of the account, which stood still while memory was read.
int64_t Profiler::account_ns(int64_t ns) const {
  for (size_t i = pauses_.size(); i-- > 0;)
    if (ns >= pauses_[i].end_ns) return ns - pauses_[i].all_ns;
  return ns;
}

void Profiler::on_stage(int64_t request, Stage stage, int64_t begin_ns, int64_t end_ns) {
  if (stage == Stage::kQueue && tokenize_end_ns_ != 0)
    stages_.push_back({request, Stage::kTokenize, tokenize_begin_ns_, tokenize_end_ns_});
  stages_.push_back({request, stage, account_ns(begin_ns), account_ns(end_ns)});
}

void Profiler::clear() {
  noted_.clear(), phases_.clear(), plans_.clear(), stages_.clear(), steps_.clear(), pauses_.clear();
  last_end_ns_ = 0;
}

/// By call, medians of what was read while the phase ran: in one go the rate, in pieces each row's reading.
void Profiler::take_readings(ProfilePhase* phase, const ThreadCeilings& ceilings) const {
  Drift& d = phase->drift;
  double bytes = 0, us = 0;
  std::vector<double> flops, near;
  for (const auto& entry : plans_) {
    const Planned& planned = entry.second;
    if (entry.first.first != phase->phase) continue;
    d.disturbed += planned.disturbed;
    if (planned.readings.empty()) continue;
    std::vector<double> of_call(planned.readings.size());
    const auto median_of = [&](std::vector<double> FarReading::*times, size_t call) {
      for (size_t i = 0; i < of_call.size(); ++i) of_call[i] = (planned.readings[i].*times)[call];
      return median(of_call);
    };
    for (size_t call = 0; call < planned.readings.front().piece_us.size(); ++call) {
      us += static_cast<double>(planned.steps) * median_of(&FarReading::stream_us, call);
      phase->rows[planned.book.row_of(call)].occasion.piece_us +=
          static_cast<double>(planned.steps) * median_of(&FarReading::piece_us, call);
    }
    bytes += static_cast<double>(planned.steps * planned.readings.front().bytes);
    d.readings += static_cast<int64_t>(planned.readings.size());
    for (const FarReading& r : planned.readings) {
      if (r.flops > 0) flops.push_back(r.flops);
      if (r.near_read > 0) near.push_back(r.near_read);
    }
  }
  d.now = us > 0 ? bytes / us * 1e6 : 0, d.file = read_bandwidth(ceilings, d.bytes);
  if (!flops.empty()) d.flops_now = median(flops), d.flops_file = ceilings.flops[size_t(Engine::kF32)];
  if (!near.empty()) d.near_now = median(near), d.near_file = read_bandwidth(ceilings, kLeastSet);
  for (ProfileRow& r : phase->rows) r.occasion.far_read_rate = d.now;
}

/// The share of the threads that worked, of the time that any did: what threads without work waited for is
/// occupancy already.
static double working(const ProfileRow& r) {
  const Occasion& o = r.occasion;
  const double worked = r.time_us - o.wait_us - o.barrier_us - o.imbalance_us;
  return worked > 0 ? std::clamp(1 - o.occupancy_us / worked, 0.0, 1.0) : 0;
}

Profile Profiler::finish(const Machine& machine, int threads) {
  add_up();
  Profile p;
  p.machine = machine, p.threads = threads, p.stages = stages_, p.steps = steps_;
  const ThreadCeilings& ceilings = machine.at(threads);
  for (const auto& [phase, collected] : phases_) {
    ProfilePhase out = collected.phase;
    take_readings(&out, ceilings);
    ThreadCeilings now = ceilings;
    for (double& flops : now.flops) flops *= out.drift.arithmetic();
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
      const PaceQuery pace{r.op, r.kernel, r.formats, r.pace_dims};
      r.occasion.kernel_us =
          calls * kernel_us(machine, pace, pace_work(r.cost) / calls, threads) / out.drift.pace();
      r.occasion.launch_us = static_cast<double>(r.cost.launches) * machine.launch_us();
      if (const KernelPace* k = nearest_pace(machine, pace)) {
        r.occasion.launch_us += calls * k->start_us * working(r);
        r.occasion.exposed = k->exposed;
      }
      r.verdict = judge(r.cost, now, r.occasion);
      // What a row got from memory, memory gave: a reading below that came in a worse moment than the row.
      if (r.verdict.bound == Bound::kFarMemory && r.verdict.attainment > 1 && r.occasion.far_read_rate > 0 &&
          r.occasion.far_read_rate < out.drift.file) {
        r.occasion.far_read_rate = std::min(out.drift.file, r.occasion.far_read_rate * r.verdict.attainment);
        r.beat_the_reading = true;
        r.verdict = judge(r.cost, now, r.occasion);
      }
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
