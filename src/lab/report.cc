#include "lab/report.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "lab/report_parts.h"
#include "machine/plausible.h"

namespace ridge {

namespace report {

std::string escaped(std::string_view in) {
  std::string out;
  while (!in.empty()) {
    const size_t n = utf8_sequence(in);
    const char c = in.front();
    if (n == 0 || (n == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)))
      out += "\xEF\xBF\xBD";
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out.append(in.substr(0, n));
    in.remove_prefix(std::max<size_t>(1, n));
  }
  return out;
}

namespace {

void tile(std::string& out, const std::string& value, const char* what) {
  out += text("<div class=\"tile\"><b>", value, "</b><span>", what, "</span></div>");
}

std::string tiles(const Profile& p) {
  std::string out = "<div class=\"tiles\">";
  if (p.ttft_us > 0) tile(out, time_text(p.ttft_us), "to the first token");
  if (p.tpot_us > 0) {
    tile(out, time_text(p.tpot_us), "a token after it");
    tile(out, number(1e6 / p.tpot_us), "tokens a second");
  }
  for (const ProfilePhase& phase : p.phases)
    if (phase.wall_us > 0)
      tile(out, percent(phase.limit_us() / phase.wall_us),
           text("of the limit in ", phase_name(phase.phase)).c_str());
  return out + "</div>";
}

/// What to know first, in a sentence.
std::string lead(const Profile& p) {
  std::string out;
  for (const ProfilePhase& phase : p.phases) {
    if (phase.wall_us <= 0) continue;
    int most = 0;
    for (int l = 1; l < kLosses; ++l)
      if (phase.loss_us(static_cast<Loss>(l)) > phase.loss_us(static_cast<Loss>(most))) most = l;
    const double lost = phase.loss_us(static_cast<Loss>(most));
    std::string name = phase_name(phase.phase);
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    out += text(out.empty() ? "" : " ", name, " is bound by ", bound_name(phase.bound()), " and runs at ",
                percent(phase.limit_us() / phase.wall_us), " of its limit",
                phase.limit_us() > 1.05 * phase.wall_us
                    ? ", which cannot be: a count is wrong, or the machine was busy when it was probed"
                    : "",
                lost > 0 ? text("; most is lost to ", loss_name(static_cast<Loss>(most)), " (",
                                percent(lost / phase.wall_us), ")")
                         : "",
                ".");
  }
  return out;
}

/// Beside the headline: whether to believe it.
std::string warning(const Profile& p) {
  const std::string why = disturbed(p.machine);
  if (why.empty()) return "";
  return text("<p class=\"lead flag\">The machine was not idle when its limits were measured (", escaped(why),
              "): shares of the limit, and what follows from them, may be wrong. Measure it again with ridge "
              "probe.</p>");
}

std::string roofline_section(const Profile& p, const std::vector<NamedRow>& rows) {
  std::string keys;
  const auto key = [&](const char* shape, Phase phase) {
    if (std::any_of(p.phases.begin(), p.phases.end(), [&](auto& f) { return f.phase == phase; }))
      keys += text("<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><path class=\"", phase_name(phase),
                   "\" d=\"", shape, "\"/></svg>", phase_name(phase), "</li>");
  };
  key("M1 7a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z", Phase::kPrefill);
  key("M7 0l7 7l-7 7l-7 -7z", Phase::kDecode);
  key("M2 2h10v10h-10z", Phase::kMixed);
  return text(
      "<section><h2>Roofline</h2><p class=\"note\">Each mark is an operator at one shape; its area is its "
      "share of "
      "its phase's time, the line above it leads to its own limit. Point at a mark, or tab to it, for its "
      "figures. Names as in the tables below.</p><ul class=\"keys\">",
      keys, "</ul><figure><div class=\"wide\">", roofline_svg(p, rows, 1120, 600, "w"),
      "</div><div class=\"narrow\">", roofline_svg(p, rows, 366, 430, "n"),
      "</div><figcaption>Ceilings measured here with ", p.threads, p.threads == 1 ? " thread" : " threads",
      "; memory roofs by the size of the data between two uses. Operators without arithmetic stand at the "
      "left "
      "edge, at their bandwidth.</figcaption></figure></section>");
}

std::string phase_section(const Profile& p, const ProfilePhase& phase, const std::vector<NamedRow>& rows) {
  double sum = 0;
  for (const ProfileRow& r : phase.rows) sum += r.time_us;
  const auto steps = static_cast<double>(std::max<int64_t>(1, phase.steps));
  std::string name = phase_name(phase.phase);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return text("<section><h2>", name, "</h2><p class=\"note\">", phase.tokens,
              phase.tokens == 1 ? " token in " : " tokens in ", phase.steps,
              phase.steps == 1 ? " step" : " steps", ", ", time_text(phase.wall_us / steps),
              " a step; limit ", time_text(phase.limit_us() / steps), ", bound by ",
              bound_name(phase.bound()), "; rows sum to ", time_text(sum), " of ", time_text(phase.wall_us),
              ".</p>", phase_bars(p, phase), operator_tables(phase, rows), "</section>");
}

}  // namespace

}  // namespace report

std::string report_html(const Profile& p, const AdviceRecord* advice) {
  using namespace report;
  const std::vector<NamedRow> rows = named_rows(p);
  const std::string title = escaped(text("Account of ", p.workload.model));
  std::string out = text(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src "
      "'none'; style-src 'unsafe-inline'\"><title>",
      title, "</title><style>", style(), "</style></head><body><main><header><h1>", title,
      "</h1><p class=\"lead\">", escaped(lead(p)), "</p>", warning(p), tiles(p), "</header>\n");
  if (advice != nullptr) out += advice_section(*advice) + "\n";
  out += roofline_section(p, rows) + "\n";
  for (const ProfilePhase& phase : p.phases) out += phase_section(p, phase, rows) + "\n";
  return out + facts_section(p) + "\n</main></body></html>\n";
}

}  // namespace ridge
