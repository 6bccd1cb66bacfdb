#include "advise/predict.h"

#include <algorithm>
#include <cmath>

#include "advise/effects.h"

namespace ridge {

namespace {

std::string percent(double share) {
  return text(std::round(1000 * share) / 10 + 0.0, " %");  // + 0: no "-0"
}

Effect effect_of(const Profile& p, const Lever& lever, const std::vector<FusedOperator>& fused) {
  if (lever.name == "activations") return activations_effect(p, lever);
  if (lever.name == "kv") return kv_effect(p, lever);
  if (lever.name == "threads") return threads_effect(p, lever);
  if (lever.name == "prefill-chunk") return chunk_effect(p, lever);
  for (const FusedOperator& f : fused)
    if (lever.name == "fuse-" + f.name) return fusion_effect(p, lever, f);
  Effect none;
  none.refusal = text("no lever is called ", printable(lever.name));
  return none;
}

}  // namespace

double queue_share(const Profile& p) {
  double queued = 0, all = 0;
  for (const StageSpan& s : p.stages) {
    if (s.end_ns < s.begin_ns) continue;  // a clock's error, which the profile counts
    const auto us = static_cast<double>(s.end_ns - s.begin_ns);
    all += us;
    if (s.stage == Stage::kQueue) queued += us;
  }
  return all > 0 ? queued / all : 0;
}

std::vector<Lever> levers_of(const Profile& p, const std::vector<FusedOperator>& fused) {
  const Workload& w = p.workload;
  std::vector<Lever> levers;
  levers.push_back({"activations", w.activation_format, w.activation_format == "int8" ? "f32" : "int8"});
  for (const char* kv : {"f32", "f16", "bf16", "q8"})
    if (w.kv_format != kv) levers.push_back({"kv", w.kv_format, kv});
  for (const ThreadCeilings& t : p.machine.by_threads)
    if (t.threads != p.machine.at(p.threads).threads)
      levers.push_back({"threads", text(p.threads), text(t.threads)});
  const int64_t chunk = w.prefill_chunk;
  for (const int64_t c : {chunk / 2, 2 * chunk, w.batch * w.prompt_tokens})
    if (c >= 1 && c != chunk && std::none_of(levers.begin(), levers.end(), [&](const Lever& l) {
          return l.name == "prefill-chunk" && l.to == text(c);
        }))
      levers.push_back({"prefill-chunk", text(chunk), text(c)});
  for (const FusedOperator& f : fused) {
    bool on = false;
    for (const ProfilePhase& phase : p.phases)
      for (const ProfileRow& r : phase.rows) on |= r.op == f.name;
    levers.push_back({"fuse-" + f.name, on ? "on" : "off", on ? "off" : "on"});
  }
  return levers;
}

namespace {

/// One run's price: the gain, and in `reason` what it rests on; predicted is false where there is no price.
LeverJudgement price(const Profile& p, const Lever& lever, const std::vector<FusedOperator>& fused) {
  LeverJudgement j;
  j.lever = lever, j.declined = true;
  if (const double queued = queue_share(p); queued > 0.8) {
    j.reason = text(percent(queued), " of the requests' time is queueing: capacity binds, not an operator");
    return j;
  }
  const Effect e = effect_of(p, lever, fused);
  if (!e.refusal.empty() || e.rows.empty()) {
    j.reason = !e.refusal.empty() ? e.refusal : "every row it touches is above its own limit: count or level";
    return j;
  }
  double now = 0, low = e.added_us.low, high = e.added_us.high;
  for (const Affected& a : e.rows) now += a.row->time_us, low += a.then_us.low, high += a.then_us.high;
  const double all = p.wall_us();
  j.predicted = true;
  j.gain = {(now - high) / all, 0, (now - low) / all};
  const std::string bounds = bounds_text(e.rows);
  j.reason = text(e.term, "; these rows take ", percent(now / all), " of the time",
                  bounds.empty() ? "" : text(", their limit is ", bounds));
  return j;
}

}  // namespace

LeverJudgement predict(const std::vector<Profile>& runs, const Lever& lever,
                       const std::vector<FusedOperator>& fused) {
  LeverJudgement j;
  for (size_t i = 0; i < runs.size(); ++i) {
    LeverJudgement one = price(runs[i], lever, fused);
    if (!one.predicted) return one;
    if (i > 0) {
      one.gain.low = std::min(one.gain.low, j.gain.low);
      one.gain.high = std::max(one.gain.high, j.gain.high);
    }
    j = std::move(one);
  }
  j.gain.value = (j.gain.low + j.gain.high) / 2;
  const auto change = [](double gain) { return text(percent(std::abs(gain)), gain < 0 ? " more" : " less"); };
  const std::string range = text("; between ", change(j.gain.low), " and ", change(j.gain.high), " time");
  j.declined = j.gain.high < kWorthwhileGain || j.gain.low < kSureGain;
  const char* verdict = !j.declined                      ? ""
                        : j.gain.high >= kWorthwhileGain ? "not surely a gain: "
                        : j.gain.high < 0                ? "slower: "
                                                         : "its term does not bind: ";
  j.reason = verdict + j.reason + range;
  return j;
}

int choose(const std::vector<LeverJudgement>& judgements) {
  // A sure gain before an open one before none; among equals, the most that is sure or possible. Of those
  // that should not gain, one whose loss an experiment can see: what moves nothing decides nothing.
  const auto rank = [](const LeverJudgement& j) {
    const Purpose purpose = purpose_of(j);
    if (purpose == Purpose::kGain) return std::pair(3, j.gain.low);
    if (purpose == Purpose::kOpen) return std::pair(2, j.gain.high);
    return std::pair(j.gain.high <= -kWorthwhileGain ? 1 : 0, j.gain.high);
  };
  int best = -1;
  for (size_t i = 0; i < judgements.size(); ++i)
    if (judgements[i].predicted &&
        (best < 0 || rank(judgements[i]) > rank(judgements[static_cast<size_t>(best)])))
      best = static_cast<int>(i);
  return best;
}

}  // namespace ridge
