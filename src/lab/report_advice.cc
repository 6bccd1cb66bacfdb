// The advice with its intervals, and what the figures rest on.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lab/report_parts.h"
#include "machine/plausible.h"

namespace ridge::report {

namespace {

std::string signed_percent(double share) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%+.1f %%", 100 * share);
  return buffer;
}
std::string range_text(const Interval& i) {
  return text(signed_percent(i.value), " [", signed_percent(i.low), ", ", signed_percent(i.high), "]");
}
std::string change_of(const Lever& l) {
  return text(escaped(l.name), ": ", escaped(l.from), " → ", escaped(l.to));
}

/// Both intervals over one axis, with zero marked.
std::string intervals(const AdviceRecord& r, const LeverJudgement& c) {
  double low = std::min(0.0, c.gain.low), high = std::max(0.0, c.gain.high);
  const bool measured = !r.block_gains.empty();
  if (measured) {
    low = std::min(low, r.interval_known ? r.measured.low : r.measured.value);
    high = std::max(high, r.interval_known ? r.measured.high : r.measured.value);
  }
  const double pad = std::max(0.005, 0.06 * (high - low));
  low -= pad, high += pad;
  const auto at = [&](double v) { return text(std::round(1000 * (v - low) / (high - low)) / 10, "%"); };
  const auto track = [&](const char* name, const Interval& i, bool interval, const char* colour) {
    std::string out =
        text("<span>", name, "</span><div class=\"track\" role=\"img\" aria-label=\"", name, " ",
             interval ? range_text(i) : signed_percent(i.value), "\"><u style=\"left:", at(0), "\"></u>");
    if (interval)
      out += text("<i class=\"", colour, "\" style=\"left:", at(i.low),
                  ";width:", std::round(1000 * (i.high - i.low) / (high - low)) / 10, "%\"></i>");
    return out + text("<b style=\"left:", at(i.value), "\"></b></div>");
  };
  std::string out = "<div class=\"span\">" + track("predicted", c.gain, true, "k8");
  if (measured) out += track("measured", r.measured, r.interval_known, "k1");
  const double zero = (0 - low) / (high - low);
  out += text(
      "<span></span><div class=\"ends\">",
      zero > 0.2 ? text("<span class=\"a\" style=\"left:0\">", signed_percent(low), "</span>") : "", "<span",
      zero < 0.12   ? " class=\"a\""
      : zero > 0.88 ? " class=\"z\""
                    : "",
      " style=\"left:", at(0), "\">0</span>",
      zero < 0.8 ? text("<span class=\"z\" style=\"left:100%\">", signed_percent(high), " time saved</span>")
                 : "",
      "</div></div>");
  return out;
}

std::string experiment(const AdviceRecord& r) {
  if (r.block_gains.empty()) return "<p class=\"note\">The experiment was not run.</p>";
  std::string out = text("<p class=\"note\">Measured in ", r.block_gains.size(),
                         " blocks of original, changed, changed, original: ", time_text(r.original_us), " → ",
                         time_text(r.changed_us));
  if (r.interval_known)
    out += text("; interval of the median at ", percent(r.confidence), " by order statistics");
  if (r.levers_tried > 1) out += text(", the error divided by ", r.levers_tried, " levers tried");
  if (r.pressure > 0.1)
    out +=
        text("; the machine was busy, a thread waited for a core in ", percent(r.pressure), " of that time");
  if (const std::string clock = clock_text(r); !clock.empty()) out += "; " + clock;
  out += text(". The first runs, ", time_text(r.first_original_us), " and ", time_text(r.first_changed_us),
              ", are not counted.</p>");
  if (r.quality.measured) {
    char kl[128];
    std::snprintf(kl, sizeof kl, "%.2e nats a token, at most %.2e", r.quality.kl_mean, r.quality.kl_max);
    out += text("<p>Quality: KL to the original ", kl, "; the most likely token is the same for ",
                percent(r.quality.same_top), " of ", r.quality.tokens, " tokens.</p>");
  } else if (r.changes_numerics) {
    out += "<p>This lever changes numerics; its cost in quality was not measured.</p>";
  }
  return out;
}

std::string considered(const AdviceRecord& r) {
  std::string out =
      "<details><summary>Every lever considered</summary><div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" "
      "aria-label=\"Levers\"><table><thead><tr><th scope=\"col\" class=\"l\">lever</th><th scope=\"col\">"
      "predicted, of the time saved</th><th scope=\"col\" class=\"l\">verdict</th><th scope=\"col\" "
      "class=\"l\">because</th></tr></thead><tbody>";
  for (size_t i = 0; i < r.considered.size(); ++i) {
    const LeverJudgement& j = r.considered[i];
    out += text("<tr><td class=\"l\">", change_of(j.lever), "</td><td>",
                j.predicted ? range_text(j.gain) : "", "</td><td class=\"l\">",
                static_cast<int>(i) == r.chosen ? "tested"
                : j.declined                    ? "declined"
                                                : "smaller gain",
                "</td><td class=\"l\">", escaped(j.reason), "</td></tr>");
  }
  return out + "</tbody></table></div></details>";
}

void fact(std::string& out, const char* name, const std::string& value) {
  if (!value.empty()) out += text("<dt>", name, "</dt><dd>", escaped(value), "</dd>");
}

}  // namespace

std::string advice_section(const AdviceRecord& r) {
  const LeverJudgement* c = r.choice();
  if (c == nullptr)
    return text("<section><h2>Advice: ", advice_sentence(r), "</h2>", considered(r), "</section>");
  const char* colour = r.decision == Decision::kHeld      ? "held"
                       : r.decision == Decision::kRefuted ? "refuted"
                                                          : "undecided";
  std::string out = text("<section><h2>Advice: ", escaped(advice_sentence(r)), " <span class=\"badge ",
                         colour, "\">", decision_name(r.decision), "</span></h2><p>",
                         r.block_gains.empty() ? "To test: " : "Tested: ", change_of(c->lever), "; ",
                         purpose_text(*c), ".</p><p class=\"why\">", escaped(c->reason), ".</p>");
  if (c->predicted) {
    out += text("<p>Predicted from the account alone: ", range_text(c->gain), " of the time saved");
    if (!r.block_gains.empty())
      out +=
          text("; measured: ", r.interval_known ? range_text(r.measured) : signed_percent(r.measured.value));
    if (r.decision != Decision::kNotRun)
      out += text("; ", decision_name(r.decision), ": ", escaped(r.decision_reason));
    out += text(".</p>", intervals(r, *c));
  }
  return out + experiment(r) + considered(r) + "</section>";
}

std::string facts_section(const Profile& p) {
  const Workload& w = p.workload;
  const ThreadCeilings& c = p.machine.at(p.threads);
  std::string out =
      "<section><h2>What the figures rest on</h2><div class=\"halves\"><div><h3>Workload</h3><dl>";
  fact(out, "model", w.model), fact(out, "weights", w.weight_format), fact(out, "KV", w.kv_format);
  fact(out, "activations", w.activation_format);
  fact(out, "prompt", text(w.prompt_tokens, " tokens, ", w.prefix_hit_tokens, " from the cache"));
  fact(out, "output", text(w.output_tokens, " tokens")), fact(out, "batch", text(w.batch));
  fact(out, "prefill chunk", text(w.prefill_chunk, " tokens")), fact(out, "sampling", w.sampling);
  fact(out, "fusions", w.fusions.empty() ? "none" : w.fusions);
  fact(out, "constrained decoding", w.constrained ? "on" : "off");
  out += "</dl></div><div><h3>Machine</h3><dl>";
  fact(out, "processor", p.machine.cpu), fact(out, "device", w.device);
  fact(out, "instruction set", p.machine.isa),
      fact(out, "threads", text(p.threads, " of ", p.machine.cores, " cores"));
  for (size_t e = 0; e < kEngines; ++e)
    if (c.flops[e] > 0)
      fact(out, engine_name(static_cast<Engine>(e)),
           rate_text(c.flops[e], e == static_cast<size_t>(Engine::kInt8) ? "OP/s" : "FLOP/s"));
  if (!c.curve.empty()) {
    fact(out, "read, cache",
         text(rate_text(c.curve.front().read * 1e9, "B/s"), " to ",
              bytes_text(static_cast<double>(c.curve.front().bytes))));
    fact(out, "read, memory", rate_text(c.curve.back().read * 1e9, "B/s"));
  }
  fact(out, "meeting of the threads", time_text(c.barrier_us)), fact(out, "measured", p.machine.date);
  if (const std::string why = disturbed(p.machine); !why.empty())
    fact(out, "not idle then", text(why, ": verdicts may be wrong"));
  out += "</dl></div><div><h3>Provenance</h3><dl>";
  fact(out, "date", p.date), fact(out, "commit", p.commit), fact(out, "kernels", p.machine.build);
  fact(out, "compiler", p.machine.compiler), fact(out, "command", p.command);
  fact(out, "runs", p.runs > 1 ? text("the shortest of ", p.runs) : "1");
  return out + "</dl></div></div></section>";
}

}  // namespace ridge::report
