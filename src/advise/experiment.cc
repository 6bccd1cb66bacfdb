#include "advise/experiment.h"

#include <algorithm>
#include <cmath>

#include "account/recorder.h"
#include "base/pressure.h"

namespace ridge {

int64_t least_blocks(double confidence) {
  int64_t n = 1;
  while (1 - 2 * std::pow(0.5, static_cast<double>(n)) < confidence) ++n;
  return n;
}

Status run_experiment(const Arm& original, const Arm& changed, const ExperimentOptions& o,
                      AdviceRecord* record) {
  const auto clock = o.clock_ns ? o.clock_ns : std::function<int64_t()>(now_ns);
  AdviceRecord& r = *record;
  RIDGE_ASSIGN(r.first_original_us, original());
  RIDGE_ASSIGN(r.first_changed_us, changed());
  std::vector<double> originals, changes;
  // Once before the first block, too: power is since the reading before.
  const auto state = [&] { return o.state ? o.state() : DeviceState(); };
  (void)state();
  const int64_t begin = clock();
  const double waited = waited_for_cores_us();
  const auto spent = [&] { return static_cast<double>(clock() - begin) / 1e9; };
  while (static_cast<int>(r.block_gains.size()) < o.max_blocks) {
    // A block that would end beyond the budget is not begun.
    const auto blocks = static_cast<double>(r.block_gains.size());
    if (blocks > 0 && spent() * (blocks + 1) / blocks > o.budget_s) break;
    double us[4] = {};
    for (int i = 0; i < 4; ++i) {
      if (o.interrupted && o.interrupted()) return Status(Code::kCancelled, "interrupted");
      const bool first = i == 0 || i == 3;
      RIDGE_ASSIGN(us[i], first ? original() : changed());
      (first ? originals : changes).push_back(us[i]);
    }
    r.block_gains.push_back(1 - (us[1] + us[2]) / (us[0] + us[3]));
    r.block_states.push_back(state());
    if (o.progress) o.progress(std::min(1.0, spent() / o.budget_s));
  }
  r.original_us = median(originals), r.changed_us = median(changes);
  if (waited >= 0) r.pressure = std::min(1.0, (waited_for_cores_us() - waited) / 1e6 / spent());
  r.levers_tried = o.levers_tried;
  r.confidence = divided_confidence(o.confidence, o.levers_tried);
  r.interval_known = median_interval(r.block_gains, r.confidence, &r.measured);
  if (!r.interval_known) r.measured = {0, median(r.block_gains), 0};
  decide(record);
  return {};
}

void decide(AdviceRecord* record) {
  AdviceRecord& r = *record;
  const LeverJudgement* choice = r.choice();
  r.decision = Decision::kNoDecision;
  if (choice == nullptr || !choice->predicted) {
    r.decision_reason = "nothing was predicted";
  } else if (!r.interval_known) {
    r.decision_reason = text("an interval needs ", least_blocks(r.confidence), " blocks, there are ",
                             r.block_gains.size(), ": raise the budget");
  } else if (r.measured.contains(0) && !r.measured.overlaps(choice->gain)) {
    r.decision = Decision::kRefuted;
    r.decision_reason = "the measured interval includes 0 and lies outside of the predicted one";
  } else if (r.measured.contains(0)) {
    r.decision_reason = "the measured interval includes 0";
  } else if (predicts_sign(choice->gain) && (r.measured.value > 0) != (choice->gain.value > 0)) {
    r.decision = Decision::kRefuted;
    r.decision_reason = "the sign is not the predicted one";
  } else if (!r.measured.overlaps(choice->gain)) {
    r.decision = Decision::kRefuted;
    r.decision_reason = text(predicts_sign(choice->gain) ? "the sign is right" : "no sign was predicted",
                             ", the size lies outside of the predicted interval");
  } else {
    r.decision = Decision::kHeld;
    r.decision_reason = text("the measured interval excludes 0 and meets the predicted one",
                             predicts_sign(choice->gain) ? "" : ", which left the sign open");
  }
}

}  // namespace ridge
