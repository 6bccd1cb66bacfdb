#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/print_to.h"
#include "lab/launch_json.h"
#include "lab/shown.h"
#include "lab/statistics.h"
#include "lab/workload_json.h"
#include "machine/plausible.h"

namespace ridge {

namespace {

using Json = nlohmann::ordered_json;

Json row_json(const ProfileRow& r) {
  Json j;
  j["name"] = r.op, j["shape"] = r.shape, j["kernel"] = r.kernel, j["formats"] = r.formats,
  j["calls"] = r.calls, j["time_us"] = r.time_us;
  j["flops"] = r.cost.total_flops();
  j["executed_flops"] = r.cost.total_executed();
  if (r.cost.square_flops > 0) j["square_flops"] = r.cost.square_flops;
  j["bytes"] = Json::object();
  for (size_t c = 0; c < kDataClasses; ++c)
    if (r.cost.read_bytes[c] + r.cost.written_bytes[c] > 0)
      j["bytes"][data_class_name(static_cast<DataClass>(c))] = {{"read", r.cost.read_bytes[c]},
                                                                {"written", r.cost.written_bytes[c]}};
  const auto bytes = static_cast<double>(r.cost.total_bytes());
  j["intensity"] = bytes > 0 ? static_cast<double>(r.cost.total_flops()) / bytes : 0;
  j["limit_us"] = r.verdict.limit_us, j["bound"] = bound_name(r.verdict.bound),
  j["attainment"] = r.verdict.attainment;
  if (r.occasion.kernel_us > 0) j["kernel_us"] = r.occasion.kernel_us;
  if (r.beat_the_reading) j["read_gbs"] = r.occasion.far_read_rate / 1e9;
  if (r.verdict.defect) j["defect"] = defect_text(r.verdict);
  for (int l = 0; l < kLosses; ++l)
    j["loss_us"][loss_name(static_cast<Loss>(l))] = r.verdict.loss_us[static_cast<size_t>(l)];
  if (!r.launches.empty()) j["launches"] = launches_json(r.launches);
  return j;
}

Json drift_json(const Drift& d, int threads) {
  Json j = {{"readings", d.readings}, {"disturbed", d.disturbed}};
  if (d.readings > 0)
    j["bytes"] = d.bytes, j["threads"] = threads, j["read_gbs"] = d.now / 1e9,
    j["machine_read_gbs"] = d.file / 1e9;
  if (d.flops_now > 0) j["f32_gflops"] = d.flops_now / 1e9, j["machine_f32_gflops"] = d.flops_file / 1e9;
  if (d.near_now > 0) j["near_read_gbs"] = d.near_now / 1e9, j["machine_near_read_gbs"] = d.near_file / 1e9;
  return j;
}

/// The rows of a phase as lines, under columns as wide as the longest name and shape.
struct Lines {
  std::vector<ShownRow> rows;
  std::vector<std::string> names;
  int name_width = 0, shape_width = 0;

  Lines(const ProfilePhase& phase, bool each_row) : rows(shown_rows(phase, each_row)) {
    constexpr size_t kLeastName = 15, kLeastShape = 16;  // "bytes of a call", "read/written, KB"
    size_t name = kLeastName, shape = kLeastShape;
    for (const ShownRow& r : rows) {
      names.push_back(row_name(r.row));
      name = std::max(name, names.back().size()), shape = std::max(shape, r.row.shape.size());
    }
    name_width = static_cast<int>(name), shape_width = static_cast<int>(shape);
  }
  void begin(std::string& out, const char* name, const char* shape) const {
    print_to(out, "  %-*s %-*s", name_width, name, shape_width, shape);
  }
  void begin(std::string& out, size_t row) const {
    begin(out, names[row].c_str(), rows[row].row.shape.c_str());
  }
};

/// What the launches of the rows take, a line each; nothing on devices that do not tell.
void launches_text(std::string& out, const Lines& lines) {
  bool first = true;
  for (size_t i = 0; i < lines.rows.size(); ++i)
    for (const KernelLaunch& k : lines.rows[i].row.launches) {
      if (std::exchange(first, false)) {
        lines.begin(out, "launches of", "shape");
        print_to(out, " %-26s %8s %7s %5s %8s %8s %7s %9s %6s\n", "kernel", "blocks", "threads", "regs",
                 "static B", "dyn. B", "local B", "blocks/SM", "occ.");
      }
      lines.begin(out, i);
      print_to(out, " %-26s %8lld %7lld %5d %8lld %8lld %7lld %9d %5.1f%%\n", k.kernel.c_str(),
               static_cast<long long>(k.blocks), static_cast<long long>(k.threads), k.registers,
               static_cast<long long>(k.static_shared_bytes), static_cast<long long>(k.dynamic_shared_bytes),
               static_cast<long long>(k.local_bytes), k.blocks_fitting, 100 * k.occupancy);
    }
}

/// Bytes by class, read and written, what is executed beside what is useful, and what others count for
/// attention.
void bytes_text_of(std::string& out, const Lines& lines) {
  lines.begin(out, "bytes of a call", "read/written, KB");
  for (size_t c = 0; c < kDataClasses; ++c)
    print_to(out, " %17s", data_class_name(static_cast<DataClass>(c)));
  print_to(out, " %15s %18s\n", "executed MFLOP", "full square MFLOP");
  for (size_t i = 0; i < lines.rows.size(); ++i) {
    const ProfileRow& r = lines.rows[i].row;
    if (r.op == "host") continue;
    const auto n = static_cast<double>(r.calls);
    lines.begin(out, i);
    for (size_t c = 0; c < kDataClasses; ++c) {
      std::string cell;
      if (r.cost.read_bytes[c] + r.cost.written_bytes[c] > 0)
        print_to(cell, "%.1f/%.1f", static_cast<double>(r.cost.read_bytes[c]) / n / 1e3,
                 static_cast<double>(r.cost.written_bytes[c]) / n / 1e3);
      print_to(out, " %17s", cell.c_str());
    }
    print_to(out, " %15.3f", static_cast<double>(r.cost.total_executed()) / n / 1e6);
    if (r.cost.square_flops > 0) print_to(out, " %18.3f", static_cast<double>(r.cost.square_flops) / n / 1e6);
    out += "\n";
  }
}

void rows_text(std::string& out, const Lines& lines, double wall_us) {
  lines.begin(out, "operator", "shape");
  print_to(out, " %6s %9s %6s %9s %9s %8s %9s %-8s %5s  %s\n", "calls", "us/call", "share", "MFLOP", "KB",
           "FLOP/B", "limit us", "bound", "att.", "where the rest went");
  for (size_t i = 0; i < lines.rows.size(); ++i) {
    const ProfileRow& r = lines.rows[i].row;
    const auto n = static_cast<double>(r.calls), bytes = static_cast<double>(r.cost.total_bytes()),
               flops = static_cast<double>(r.cost.total_flops());
    lines.begin(out, i);
    print_to(out, " %6lld %9.2f %5.1f%% %9.3f %9.1f %8.2f %9.2f %-8s %4.0f%%%s",
             static_cast<long long>(r.calls), r.time_us / n, 100 * r.time_us / wall_us, flops / n / 1e6,
             bytes / n / 1e3, bytes > 0 ? flops / bytes : 0.0, r.verdict.limit_us / n,
             bound_name(r.verdict.bound), 100 * r.verdict.attainment, r.verdict.defect ? "!" : " ");
    for (const auto& [loss, share] : shown_losses(r))
      print_to(out, " %s %.0f%%", loss_name(loss), 100 * share);
    out += "\n";
  }
}

/// Limit and losses of all rows, what is unexplained before the others.
std::string step_text(const ProfilePhase& p) {
  std::string out, others;
  print_to(out, "  step: limit %.1f %%, unexplained %.1f %%", 100 * p.limit_us() / p.wall_us,
           100 * p.loss_us(Loss::kUnexplained) / p.wall_us);
  for (int l = 0; l < kLosses; ++l)
    if (const double us = p.loss_us(static_cast<Loss>(l)); us != 0 && l != int(Loss::kUnexplained))
      print_to(others, "%s %s %.1f %%", others.empty() ? ";" : ",", loss_name(static_cast<Loss>(l)),
               100 * us / p.wall_us);
  double sum = 0;
  for (const ProfileRow& r : p.rows) sum += r.time_us;
  out += others;
  print_to(out, "; rows sum to %.2f of %.2f ms, %.2f ms between steps", sum / 1e3, p.wall_us / 1e3,
           p.between_us / 1e3);
  return wrapped(out, ",;", 4) + "\n";
}

void phase_text(std::string& out, const ProfilePhase& p, int threads, bool color, bool each_row) {
  const char *bold = color ? "\x1b[1m" : "", *plain = color ? "\x1b[0m" : "";
  print_to(out, "\n%s%s%s: %lld token%s in %lld step%s, %.2f ms; bound by %s, limit %.2f ms (%.0f %%)\n",
           bold, phase_name(p.phase), plain, static_cast<long long>(p.tokens), p.tokens == 1 ? "" : "s",
           static_cast<long long>(p.steps), p.steps == 1 ? "" : "s", p.wall_us / 1e3, bound_name(p.bound()),
           p.limit_us() / 1e3, 100 * p.limit_us() / p.wall_us);
  const Lines lines(p, each_row);
  rows_text(out, lines, p.wall_us);
  size_t sums = 0;
  for (const ShownRow& r : lines.rows) sums += r.sums.size();
  if (sums > 0)
    print_to(out, "  (lines with .. sum %zu rows that differ in lengths alone; --each-row prints them)\n",
             sums);
  if (std::any_of(lines.rows.begin(), lines.rows.end(),
                  [](const ShownRow& r) { return r.row.verdict.defect; }))
    out +=
        "  (!: faster than its limit, or slower than a thousandth of it: a count, the level or a unit is "
        "wrong,\n"
        "    or the run stood still)\n";
  bytes_text_of(out, lines);
  launches_text(out, lines);
  out += step_text(p);
  if (const std::string drift = drift_text(p.drift, threads); !drift.empty())
    out += wrapped("  " + drift, ";", 4) + "\n";
}

/// What was run, on what.
std::string header_text(const Profile& p) {
  const Workload& w = p.workload;
  const ThreadCeilings& c = p.machine.at(p.threads);
  std::string run = text("  weights ", w.weight_format, ", KV ", w.kv_format, ", activations ",
                         w.activation_format, "; prompt ", w.prompt_tokens, ", output ", w.output_tokens,
                         ", batch ", w.batch, ", prefill chunk ", w.prefill_chunk, ", ", w.sampling),
              machine;
  if (p.runs > 1) run += text("; shortest of ", p.runs, " runs");
  print_to(machine,
           "  %s, %s, %d threads: read %.1f GB/s from memory, f32 %.0f, bf16 %.0f, int8 %.0f GFLOP/s, "
           "barrier %.2f us (measured %s)",
           p.machine.cpu.c_str(), p.machine.isa.c_str(), p.threads, c.curve.back().read, c.flops[0] / 1e9,
           c.flops[1] / 1e9, c.flops[3] / 1e9, c.barrier_us, p.machine.date.c_str());
  std::string out = text(w.model, "\n", wrapped(run, ",;", 4), "\n", wrapped(machine, ",", 4), "\n");
  if (const std::string why = disturbed(p.machine); !why.empty())
    out += text("  the machine was not idle then (", why, "): verdicts may be wrong\n");
  return out;
}

}  // namespace

std::string drift_text(const Drift& d, int threads) {
  std::string out;
  if (d.disturbed > 0)
    print_to(out, "%lld readings of memory left out: a thread lost its core to another program meanwhile",
             static_cast<long long>(d.disturbed));
  if (d.readings == 0) return out;
  if (!out.empty()) out += "; ";
  print_to(
      out,
      "memory read at %s, %d thread%s: %.1f GB/s between the steps (median of %lld), %.1f in the machine "
      "file",
      bytes_text(static_cast<double>(d.bytes)).c_str(), threads, threads == 1 ? "" : "s", d.now / 1e9,
      static_cast<long long>(d.readings), d.file / 1e9);
  if (d.flops_now > 0)
    print_to(out, "; f32 arithmetic: %.0f GFLOP/s, %.0f in the machine file", d.flops_now / 1e9,
             d.flops_file / 1e9);
  if (d.near_now > 0)
    print_to(out, "; cores read their own caches at %.0f GB/s, %.0f", d.near_now / 1e9, d.near_file / 1e9);
  return out;
}

std::string profile_json(const Profile& p) {
  Json j;
  j["phases"] = Json::array();
  for (const ProfilePhase& phase : p.phases) {
    Json f;
    f["name"] = phase_name(phase.phase), f["wall_us"] = phase.wall_us, f["steps"] = phase.steps,
    f["tokens"] = phase.tokens, f["between_us"] = phase.between_us;
    f["limit_us"] = phase.limit_us(), f["bound"] = bound_name(phase.bound());
    for (int l = 0; l < kLosses; ++l)
      f["loss_us"][loss_name(static_cast<Loss>(l))] = phase.loss_us(static_cast<Loss>(l));
    if (phase.drift.readings + phase.drift.disturbed > 0) f["drift"] = drift_json(phase.drift, p.threads);
    for (const ProfileRow& r : phase.rows) f["operators"].push_back(row_json(r));
    j["phases"].push_back(f);
  }
  j["ttft_us"] = p.ttft_us, j["tpot_us"] = p.tpot_us;
  j["tpot"] = {{"n", p.tpot.us.size()}, {"requests", p.tpot.requests}};
  if (p.tpot.unanswered > 0) j["tpot"]["unanswered"] = p.tpot.unanswered;
  if (!p.tpot.us.empty()) {
    j["tpot"]["mean_us"] = p.tpot.mean_us(), j["tpot"]["p50_us"] = percentile(p.tpot.us, 0.5);
    j["tpot"]["p99_us"] = p.tpot.p99_is_known() ? Json(percentile(p.tpot.us, 0.99)) : Json();
  }
  if (p.clock_errors > 0) j["clock_errors"] = p.clock_errors;
  for (const StageSpan& s : p.stages)
    j["stages"].push_back(
        {{"request", s.request},
         {"stage", stage_name(s.stage)},
         {"begin_us", double(s.begin_ns - p.stages.front().begin_ns) / 1e3},
         {"us", s.end_ns >= s.begin_ns ? Json(double(s.end_ns - s.begin_ns) / 1e3) : Json()}});
  j["workload"] = workload_json(p.workload);
  const ThreadCeilings& c = p.machine.at(p.threads);
  j["machine"] = {{"cpu", p.machine.cpu},       {"isa", p.machine.isa},
                  {"threads", p.threads},       {"measured", p.machine.date},
                  {"barrier_us", c.barrier_us}, {"read_gbs", c.curve.back().read}};
  for (int e = 0; e < kEngines; ++e)
    if (c.flops[static_cast<size_t>(e)] > 0)
      j["machine"]["flops"][engine_name(static_cast<Engine>(e))] = c.flops[static_cast<size_t>(e)];
  if (const std::string why = disturbed(p.machine); !why.empty()) j["machine"]["disturbed"] = why;
  j["provenance"] = {{"date", p.date},           {"commit", p.commit},
                     {"build", p.machine.build}, {"compiler", p.machine.compiler},
                     {"command", p.command},     {"runs", p.runs}};
  return j.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string profile_text(const Profile& p, bool color, bool each_row) {
  std::string out = header_text(p);
  for (const ProfilePhase& phase : p.phases) phase_text(out, phase, p.threads, color, each_row);
  print_to(out, "\nTTFT %.2f ms", p.ttft_us / 1e3);
  if (p.tpot_us > 0) print_to(out, ", TPOT %.3f ms (%.1f tokens/s)", p.tpot_us / 1e3, 1e6 / p.tpot_us);
  if (p.tpot.requests > 1)
    print_to(out, "; of %lld requests TPOT %.3f ms (n=%zu of %lld), %s",
             static_cast<long long>(p.tpot.requests), p.tpot.mean_us() / 1e3, p.tpot.us.size(),
             static_cast<long long>(p.tpot.requests), p.tpot.p99_text().c_str());
  if (p.tpot.unanswered > 0)
    print_to(out, "; %lld without a token", static_cast<long long>(p.tpot.unanswered));
  return out + "\n";
}

}  // namespace ridge
