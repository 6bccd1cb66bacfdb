// Where each phase's time goes: bars for the eye, tables for the figures.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lab/report_parts.h"
#include "lab/shown.h"

namespace ridge::report {

namespace {

struct Part {
  std::string name;
  double us = 0;
  int colour = 0;
};

// Colours of limit and losses; kUnexplained is hatched.
int loss_colour(Loss loss) {
  switch (loss) {
    case Loss::kBarrier:
      return 2;
    case Loss::kImbalance:
      return 3;
    case Loss::kOccupancy:
      return 4;
    case Loss::kShape:
      return 5;
    case Loss::kConversion:
      return 6;
    case Loss::kHostGap:
      return 7;
    case Loss::kUnexplained:
      return 9;
    default:
      return 8;
  }
}

std::string us_text(double us) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f", us);
  return buffer;
}

std::string bar(const std::string& what, const std::vector<Part>& parts, double steps) {
  double all = 0, positive = 0;
  for (const Part& p : parts) all += p.us, positive += std::max(0.0, p.us);
  std::string segments, keys;
  for (const Part& p : parts) {
    if (std::fabs(p.us) < 0.0005 * all && p.name != "unexplained") continue;
    const std::string said =
        text(p.name, ": ", percent(all > 0 ? p.us / all : 0), ", ", time_text(p.us / steps), " a step");
    if (p.us > 0 && positive > 0)
      segments += text("<span class=\"k", p.colour, "\" style=\"flex:", number(1000 * p.us / positive),
                       "\" tabindex=\"0\" role=\"img\" "
                       "aria-label=\"",
                       escaped(said), "\" title=\"", escaped(said), "\"></span>");
    keys += text("<li><span class=\"swatch k", p.colour, "\"></span>", escaped(p.name), " <b>",
                 percent(all > 0 ? p.us / all : 0), "</b> ", time_text(p.us / steps), "</li>");
  }
  return text("<div class=\"what\">", what, "</div><div class=\"bar\">", segments,
              "</div><ul class=\"keys\">", keys, "</ul>");
}

void cell(std::string& out, const std::string& content, bool left = false) {
  out += text(left ? "<td class=\"l\">" : "<td>", content, "</td>");
}
std::string heading(const char* name, bool left = false) {
  return text(left ? "<th scope=\"col\" class=\"l\">" : "<th scope=\"col\">", name, "</th>");
}

std::string largest_losses(const ProfileRow& r) {
  std::string out;
  for (const auto& [loss, share] : shown_losses(r))
    out += text(out.empty() ? "" : ", ", loss_name(loss), " ", percent(share));
  return out;
}

std::string row_table(const std::string& label, const std::string& caption,
                      const std::vector<NamedRow>& rows) {
  std::string out = text("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", label,
                         "\"><table><caption>", caption, "</caption><thead><tr>");
  for (const char* h : {"", "operator", "shape"}) out += heading(h, true);
  for (const char* h : {"calls", "µs", "share", "MFLOP", "kB", "FLOP/B", "limit µs"}) out += heading(h);
  out += heading("bound", true) + heading("attained") + heading("where the rest went", true) +
         "</tr></thead><tbody>";
  for (const NamedRow& n : rows) {
    const ProfileRow& r = *n.row;
    const auto calls = static_cast<double>(std::max<int64_t>(1, r.calls)),
               bytes = static_cast<double>(r.cost.total_bytes()),
               flops = static_cast<double>(r.cost.total_flops());
    out += "<tr>";
    cell(out, n.id, true), cell(out, text(escaped(r.op), " <small>", escaped(r.formats), "</small>"), true);
    cell(out, escaped(r.shape), true);
    cell(out, text(r.calls)), cell(out, us_text(r.time_us / calls)), cell(out, percent(n.share));
    cell(out, number(flops / calls / 1e6)), cell(out, number(bytes / calls / 1e3));
    cell(out, bytes > 0 ? number(flops / bytes) : ""), cell(out, us_text(r.verdict.limit_us / calls));
    cell(out, r.op == "host" ? "" : bound_name(r.verdict.bound), true);
    const double attained = std::clamp(100 * r.verdict.attainment, 0.0, 100.0);
    cell(out, r.verdict.limit_us <= 0 ? ""
              : r.verdict.defect
                  ? text("<span class=\"flag\">", percent(r.verdict.attainment), ", ", defect_text(r.verdict),
                         "</span>")
                  : text(percent(r.verdict.attainment),
                         "<span class=\"meter\"><i style=\"width:", number(attained), "%\"></i></span>"));
    cell(out, largest_losses(r), true);
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

std::string main_table(const ProfilePhase& phase, const std::vector<NamedRow>& rows) {
  std::vector<NamedRow> own;
  for (const NamedRow& n : rows)
    if (n.phase == &phase) own.push_back(n);
  return row_table(text("Operators of ", phase_name(phase.phase)), "Times, work and bytes are of one call",
                   own);
}

/// The rows behind the sums of the main table.
std::string length_tables(const ProfilePhase& phase, const std::vector<NamedRow>& rows) {
  std::string out;
  for (const NamedRow& n : rows) {
    if (n.phase != &phase || n.sums.empty()) continue;
    std::vector<NamedRow> each;
    for (const ProfileRow* r : n.sums)
      each.push_back({text(n.id, ".", each.size() + 1),
                      &phase,
                      std::make_shared<const ProfileRow>(*r),
                      phase.wall_us > 0 ? r->time_us / phase.wall_us : 0,
                      {}});
    const std::string what = text(n.id, " by length: the ", each.size(), " rows of ", escaped(n.row->op));
    out += text("<details><summary>", what, "</summary>",
                row_table(what, "Times, work and bytes are of one call", each), "</details>");
  }
  return out;
}

std::string loss_table(const ProfilePhase& phase, const std::vector<NamedRow>& rows) {
  std::string out = text(
      "<details><summary>Limit and losses of each row</summary><div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"Losses of ",
      phase_name(phase.phase),
      "\"><table><caption>Microseconds of all calls; limit "
      "and losses sum to the time</caption><thead><tr>");
  out += heading("", true) + heading("operator", true) + heading("kernel", true) + heading("time") +
         heading("limit");
  for (int l = 0; l < kLosses; ++l) out += heading(loss_name(static_cast<Loss>(l)));
  out += "</tr></thead><tbody>";
  for (const NamedRow& n : rows) {
    if (n.phase != &phase) continue;
    out += "<tr>";
    cell(out, n.id, true), cell(out, escaped(row_name(*n.row)), true);
    cell(out, escaped(n.row->kernel), true);
    cell(out, us_text(n.row->time_us)), cell(out, us_text(n.row->verdict.limit_us));
    for (int l = 0; l < kLosses; ++l) cell(out, us_text(n.row->verdict.loss(static_cast<Loss>(l))));
    out += "</tr>";
  }
  return out + "</tbody></table></div></details>";
}

std::string byte_table(const ProfilePhase& phase, const std::vector<NamedRow>& rows) {
  std::string out = text(
      "<details><summary>Bytes by class</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Bytes of ",
      phase_name(phase.phase),
      "\"><table><caption>Bytes of one call, read / written; full square: useful FLOP of attention as others "
      "count them, n x n for a prompt of n</caption><thead><tr>");
  out += heading("", true) + heading("operator", true);
  for (int c = 0; c < kDataClasses; ++c) out += heading(data_class_name(static_cast<DataClass>(c)));
  out += heading("useful FLOP") + heading("executed FLOP") + heading("full square FLOP") +
         "</tr></thead><tbody>";
  for (const NamedRow& n : rows) {
    if (n.phase != &phase || n.row->op == "host") continue;
    const int64_t calls = std::max<int64_t>(1, n.row->calls);
    out += "<tr>";
    cell(out, n.id, true), cell(out, escaped(row_name(*n.row)), true);
    for (size_t c = 0; c < kDataClasses; ++c)
      cell(out, text(n.row->cost.read_bytes[c] / calls, " / ", n.row->cost.written_bytes[c] / calls));
    cell(out, text(n.row->cost.total_flops() / calls));
    cell(out, text(n.row->cost.total_executed() / calls));
    cell(out, n.row->cost.square_flops > 0 ? text(n.row->cost.square_flops / calls) : "");
    out += "</tr>";
  }
  return out + "</tbody></table></div></details>";
}

std::string launch_table(const ProfilePhase& phase, const std::vector<NamedRow>& rows) {
  std::string body;
  for (const NamedRow& n : rows) {
    if (n.phase != &phase) continue;
    for (const KernelLaunch& k : n.row->launches) {
      body += "<tr>";
      cell(body, n.id, true), cell(body, escaped(row_name(*n.row)), true),
          cell(body, escaped(k.kernel), true);
      cell(body, text(k.blocks, " × ", k.threads)), cell(body, text(k.registers));
      cell(body, text(k.static_shared_bytes, " + ", k.dynamic_shared_bytes)), cell(body, text(k.local_bytes));
      cell(body, text(k.blocks_fitting)), cell(body, percent(k.occupancy));
      body += "</tr>";
    }
  }
  if (body.empty()) return "";
  std::string out = text(
      "<details><summary>Launches: registers, shared memory, spills, occupancy</summary><div "
      "class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Launches of ",
      phase_name(phase.phase),
      "\"><table><caption>Launches of one call. Local bytes of a thread: spilled registers, and arrays; "
      "occupancy: warps of the blocks that fit on a multiprocessor and exist</caption><thead><tr>");
  for (const char* h : {"", "operator", "kernel"}) out += heading(h, true);
  for (const char* h : {"blocks × threads", "registers", "shared bytes, static + dynamic", "local bytes",
                        "blocks that fit", "occupancy"})
    out += heading(h);
  return out + "</tr></thead><tbody>" + body + "</tbody></table></div></details>";
}

}  // namespace

std::string phase_bars(const Profile& profile, const ProfilePhase& phase) {
  const auto colours = operator_colours(profile);
  const auto steps = static_cast<double>(std::max<int64_t>(1, phase.steps));
  std::vector<Part> by_operator;
  double rest = 0, host = 0;
  for (const ProfileRow& r : phase.rows) {
    const auto found = colours.find(r.op);
    if (r.op == "host") {
      host += r.time_us;
    } else if (found == colours.end() || found->second == 0) {
      rest += r.time_us;
    } else {
      auto part =
          std::find_if(by_operator.begin(), by_operator.end(), [&](const Part& p) { return p.name == r.op; });
      if (part == by_operator.end()) part = by_operator.insert(part, {r.op, 0, found->second});
      part->us += r.time_us;
    }
  }
  std::stable_sort(by_operator.begin(), by_operator.end(),
                   [](const Part& a, const Part& b) { return a.us > b.us; });
  by_operator.push_back({"other operators", rest, 0});
  by_operator.push_back({"host", host, 9});

  std::vector<Part> by_loss = {{"limit", phase.limit_us(), 1}};
  for (int l = 0; l < kLosses; ++l)
    by_loss.push_back({loss_name(static_cast<Loss>(l)), phase.loss_us(static_cast<Loss>(l)),
                       loss_colour(static_cast<Loss>(l))});
  const std::string drift = drift_text(phase.drift, profile.threads);
  return bar("By operator", by_operator, steps) +
         bar("Limit of this machine, and what is lost to it", by_loss, steps) +
         (drift.empty() ? "" : text("<p>", escaped(drift), ".</p>"));
}

std::string operator_tables(const ProfilePhase& phase, const std::vector<NamedRow>& rows) {
  return main_table(phase, rows) + length_tables(phase, rows) + loss_table(phase, rows) +
         byte_table(phase, rows) + launch_table(phase, rows);
}

}  // namespace ridge::report
