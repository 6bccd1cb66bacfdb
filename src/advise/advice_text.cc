#include "advise/goal.h"
#include "advise/score.h"
#include "base/print_to.h"

namespace ridge {

namespace {

std::string change_of(const Lever& l) {
  return text(l.name, " ", l.from, " -> ", l.to);
}

void experiment_text(std::string& out, const AdviceRecord& r) {
  print_to(out, "  measured: %+.1f %%", 100 * r.measured.value);
  if (r.interval_known)
    print_to(out, " [%+.1f, %+.1f], confidence %.1f %%%s", 100 * r.measured.low, 100 * r.measured.high,
             100 * r.confidence,
             r.levers_tried > 1 ? text(" (", r.levers_tried, " levers tried)").c_str() : "");
  print_to(
      out,
      "; the median of %zu block%s of original, changed, changed, original; of single runs %.2f -> %.2f ms\n",
      r.block_gains.size(), r.block_gains.size() == 1 ? "" : "s", r.original_us / 1e3, r.changed_us / 1e3);
  // Pressure as low as this is what the system itself does.
  if (r.pressure > 0.1)
    print_to(out, "  the machine was busy: a thread waited for a core in %.0f %% of the experiment's time\n",
             100 * r.pressure);
  if (const std::string clock = clock_text(r); !clock.empty()) out += "  " + clock + "\n";
  print_to(out, "  %s: %s\n", decision_name(r.decision), r.decision_reason.c_str());
  if (r.quality.measured)
    print_to(
        out,
        "  quality: KL to the original %.2e nats a token (largest %.2e), same best token %.1f %% of %lld\n",
        r.quality.kl_mean, r.quality.kl_max, 100 * r.quality.same_top,
        static_cast<long long>(r.quality.tokens));
  else if (r.changes_numerics)
    print_to(out, "  quality: not measured, this lever changes numerics\n");
}

}  // namespace

std::string advice_text(const AdviceRecord& r, bool color) {
  const char *bold = color ? "\x1b[1m" : "", *plain = color ? "\x1b[0m" : "";
  std::string out = text(bold, "advice: ", advice_sentence(r), plain, "\n");
  if (const LeverJudgement* c = r.choice()) {
    out += text("  ", r.block_gains.empty() ? "to test: " : "tested: ", change_of(c->lever), ": ",
                purpose_text(*c), "\n");
    out += text("  why: ", c->reason, "\n");
    if (c->predicted)
      print_to(out, "  predicted: %+.1f %% less time [%+.1f, %+.1f]\n", 100 * c->gain.value,
               100 * c->gain.low, 100 * c->gain.high);
    if (!r.block_gains.empty()) experiment_text(out, r);
  }
  if (r.goal) out += "  goal: " + goal_sentence(*r.goal) + "\n";
  out += "  others considered:\n";
  for (size_t i = 0; i < r.considered.size(); ++i)
    if (static_cast<int>(i) != r.chosen) {
      const LeverJudgement& j = r.considered[i];
      out += text("    ", change_of(j.lever), ": ", j.declined ? "declined, " : "", j.reason, "\n");
    }
  return out;
}

}  // namespace ridge
