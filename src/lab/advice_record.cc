#include "lab/advice_record.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/print_to.h"
#include "lab/statistics.h"

namespace ridge {

const char* purpose_name(Purpose p) {
  static const char* const kNames[] = {"gain", "open", "control"};
  return kNames[static_cast<int>(p)];
}

const char* purpose_text(const LeverJudgement& j) {
  if (!j.predicted) return "the account has no price for it, the test alone can tell";
  static const char* const kTexts[] = {"the account is sure of a gain",
                                       "it may gain, the account alone cannot tell",
                                       "it should gain nothing worth a change, the test checks that"};
  return kTexts[static_cast<int>(purpose_of(j))];
}

Purpose purpose_of(const LeverJudgement& j) {
  if (!j.predicted) return Purpose::kOpen;
  if (!j.declined) return Purpose::kGain;
  return j.gain.high >= kWorthwhileGain ? Purpose::kOpen : Purpose::kControl;
}

const char* decision_name(Decision d) {
  static const char* const kNames[] = {"not run", "held", "refuted", "no decision"};
  return kNames[static_cast<int>(d)];
}

const char* advice_name(Advice a) {
  static const char* const kNames[] = {"none", "untested", "keep", "change"};
  return kNames[static_cast<int>(a)];
}

Advice advice_of(const AdviceRecord& r) {
  if (r.choice() == nullptr) return Advice::kNone;
  if (r.decision == Decision::kNotRun) return Advice::kUntested;
  const bool gain = r.interval_known && r.measured.low > 0 && r.measured.value >= kWorthwhileGain;
  return gain ? Advice::kChange : Advice::kKeep;
}

std::string option_of(const Lever& l) {
  if (l.name == "threads") return text("-t ", l.to);
  if (l.name == "prefill-chunk") return text("--prefill-tokens ", l.to);
  if (l.name.rfind("fuse-", 0) == 0) {
    const std::string op = l.name.substr(5);
    return l.to == "off" ? text("--no-fuse ", op) : text("no --no-fuse ", op);
  }
  return text("--", l.name, " ", l.to);
}

/// Median clock of the blocks [begin, end) that tell one; 0: none does.
static double median_clock_mhz(const AdviceRecord& r, size_t begin, size_t end) {
  std::vector<double> mhz;
  for (size_t i = begin; i < end; ++i)
    if (const auto& told = r.block_states[i].clock_mhz) mhz.push_back(*told);
  return median(std::move(mhz));
}

std::string clock_text(const AdviceRecord& r) {
  // A single reading of a fifth of a millisecond may be off by more than what is worth saying.
  const size_t blocks = r.block_states.size(), third = (blocks + 2) / 3;
  const double first = median_clock_mhz(r, 0, third), last = median_clock_mhz(r, blocks - third, blocks);
  constexpr double kWorthSaying = 0.02;
  if (first == 0 || last == 0 || std::fabs(last - first) <= kWorthSaying * first) return "";
  std::string out;
  print_to(out, "the clock went from %.2f to %.2f GHz between the first third of the blocks and the last",
           first / 1e3, last / 1e3);
  return out;
}

std::string advice_sentence(const AdviceRecord& r) {
  if (r.choice() == nullptr) return "none: the account can price no lever of this workload";
  const Lever& l = r.choice()->lever;
  switch (advice_of(r)) {
    case Advice::kChange:
      return text("set ", option_of(l));
    case Advice::kKeep:
      return text("keep ", l.name, " ", l.from);
    default:
      return text(l.name, " ", l.from, " -> ", l.to, ", not tested");
  }
}

}  // namespace ridge
