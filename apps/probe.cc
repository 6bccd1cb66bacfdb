// ridge probe: measures this machine's ceilings and keeps them.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/user_folder.h"
#include "lab/ceilings.h"
#include "machine/plausible.h"
#include "refusals.h"
#include "verbs.h"

namespace ridge::app {

namespace {

struct ProbeChoices {
  std::string device = "cpu", isa, output;
  int threads = 0;
  bool json = false, busy = false;
};

void print(const Machine& m, const std::string& path) {
  std::printf("%s, %s\nbuild %s, %s, %.1f s\n", m.cpu.c_str(), m.isa.c_str(), m.build.c_str(), m.date.c_str(),
              m.seconds);
  if (const std::string why = disturbed(m); !why.empty())
    std::printf("other work ran (%s): figures may be too low; probe again on an idle machine\n", why.c_str());
  for (const ThreadCeilings& t : m.by_threads) {
    std::string peaks;
    for (int e = 0; e < kEngines; ++e)
      if (const double flops = t.flops[static_cast<size_t>(e)]; flops > 0)
        peaks += text(engine_name(static_cast<Engine>(e)), " ", std::llround(flops / 1e9), ", ");
    std::printf("\n%d thread%s, GFLOP/s: %sbarrier %.2f us\n", t.threads, t.threads == 1 ? "" : "s",
                peaks.c_str(), t.barrier_us);
    std::printf("  %-12s %8s %8s %8s  GB/s\n", "working set", "read", "write", "copy");
    for (const BandwidthPoint& p : t.curve)
      std::printf("  %-12s %8.1f %8.1f %8.1f\n", bytes_text(double(p.bytes)).c_str(), p.read, p.write,
                  p.copy);
    if (t.pieces.empty()) continue;
    std::printf("  reads of main memory in pieces between two meetings:");
    for (const PiecePoint& p : t.pieces) std::printf(" %s %.1f", bytes_text(double(p.bytes)).c_str(), p.read);
    std::printf(" GB/s\n");
  }
  for (const OtherMeasure& x : m.others)
    std::printf("%s%-26s %10.3f %s\n", &x == &m.others.front() ? "\n" : "", x.what.c_str(), x.value,
                x.unit.c_str());
  if (!m.kernels.empty())
    std::printf("\nkernels on near data, one thread; work in MFLOP (MB where an operator counts none)\n");
  for (const KernelPace& k : m.kernels) {
    std::string dims;
    for (const int64_t d : k.dims) dims += text(dims.empty() ? "" : "x", d);
    std::printf("  %-17s %-24s %-8s %-12s", k.op.c_str(), k.kernel.c_str(), k.formats.c_str(), dims.c_str());
    for (const PacePoint& p : k.points) std::printf("  %.4g: %.2f us", p.work / 1e6, p.us);
    std::printf("  start %.2f us", k.start_us);
    if (k.exposed > 0) std::printf("  exposed %.0f %%", 100 * k.exposed);
    std::printf("\n");
  }
  std::printf("\nkept in %s\n", path.c_str());
}

Status run(const ProbeChoices& o) {
  ProbeOptions probe;
  if (o.device != "cpu" && (o.threads > 0 || !o.isa.empty()))
    return invalid_argument(o.threads > 0 ? "--threads" : "--isa", " is for --device cpu, not ", o.device,
                            ": leave it out");
  probe.threads = o.threads;
  if (!o.isa.empty()) {
    RIDGE_ASSIGN(probe.isa, parse_isa(o.isa));
  }
  if (stderr_is_terminal())
    probe.progress = [](const char* what, double share) {
      std::fprintf(stderr, "\r%3.0f %%  %-12s", 100 * share, what);
      if (share >= 1) std::fprintf(stderr, "\r%30s\r", "");
    };
  RIDGE_TRY(check_apart({}, {{"--output", o.output}}));
  RIDGE_TRY(check_output_file("--output", o.output));
  DeviceOptions on;
  on.backend = o.device, on.cpu.threads = o.threads, on.cpu.isa = probe.isa;
  RIDGE_ASSIGN(const auto device, create_device(on));
  const std::string path = o.output.empty() ? machine_path_of(*device) : o.output;
  if (path.empty()) return declined(kNoUserFolder, ": name the machine file with --output");
  RIDGE_ASSIGN(const Machine m, probe_device(*device, probe));
  if (const std::string why = disturbed(m); !why.empty() && !o.busy)
    return declined("the machine is not idle: ", why,
                    "; nothing was kept: probe again when it is, or --busy");
  RIDGE_TRY(save_machine(path, m));
  if (o.json) {
    RIDGE_ASSIGN(const std::string content, read_file(path, 16 << 20));
    std::fputs(content.c_str(), stdout);
  } else {
    print(m, path);
  }
  return {};
}

}  // namespace

Command add_probe(CLI::App& cli) {
  auto o = std::make_shared<ProbeChoices>();
  CLI::App* sub =
      cli.add_subcommand("probe", "Measure this machine's ceilings and keep them in the machine file");
  sub->add_option("--device", o->device, "cpu (default) or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  sub->add_option("-t,--threads", o->threads,
                  "The largest thread count; default: the cores that mask and quota allow")
      ->check(thread_count());
  sub->add_option("--isa", o->isa, "Force an instruction set: scalar, avx2 or avx512");
  sub->add_option(
      "-o,--output", o->output,
      "Machine file; default: $RIDGE_MACHINE, else ridge/machine-ISA.json in $XDG_CACHE_HOME or ~/.cache");
  sub->add_flag("--busy", o->busy, "Keep the figures even if other work disturbed them");
  sub->add_flag("--json", o->json, "The machine file on stdout");
  sub->footer(
      "It takes about half a minute on an idle machine. On a busy one repetitions are left out after 40 s,\n"
      "and after 75 s it gives up: the figures are then refused, with 1.\n"
      "A verb that needs ceilings and finds none measures them; those of a busy machine serve for 15 "
      "minutes,\n"
      "beside the machine file as FILE.disturbed.\n"
      "Examples:\n  ridge probe\n  ridge probe --isa scalar -o scalar.json --json");
  return {sub, [o] { return run(*o); }};
}

/// Figures that other work disturbed are no machine file, but serve the commands of the next minutes:
/// measuring again with each would take longer than what was asked for.
static constexpr std::chrono::minutes kDisturbedServe{15};

static Result<Machine> disturbed_of_late(const std::string& path, Device& device) {
  std::error_code error;
  const auto age =
      std::filesystem::file_time_type::clock::now() - std::filesystem::last_write_time(path, error);
  if (error || age > kDisturbedServe || age < -kDisturbedServe) return not_found(path, ": none of late");
  RIDGE_ASSIGN(Machine m, load_machine(path, identity_of(device)));
  RIDGE_TRY(check_ceilings(m, device, path));
  return m;
}

/// Measures `device` and keeps the figures in `file`, or beside it where other work disturbed them.
static Result<Machine> measured_now(const std::string& file, const std::string& beside, Device& device) {
  ProbeOptions probe;
  probe.isa = device.target().isa, probe.threads = device.host_threads();
  RIDGE_ASSIGN(Machine m, probe_device(device, probe));
  if (file.empty()) return m;
  if (disturbed(m).empty()) {
    RIDGE_TRY(save_machine(file, m));
  } else if (save_machine(beside, m).ok()) {
    say(text("figures of a busy machine serve for ", kDisturbedServe.count(),
             " minutes only; 'ridge probe' on an idle one keeps them, 'ridge probe --busy' on any"));
  }
  return m;
}

Result<Machine> machine_for(const std::string& path, Device& device) {
  const char* set = std::getenv("RIDGE_MACHINE");
  const std::string file = path.empty() ? machine_path_of(device) : path;
  auto loaded = file.empty() ? Result<Machine>(not_found(kNoUserFolder, ": no machine file is kept"))
                             : load_machine(file, identity_of(device));
  const auto code = loaded.status().code();
  // A file that the user named is taken or refused, never written over; the kept one is made anew when there
  // is none that fits.
  const bool missing = code == Code::kNotFound || (code == Code::kDeclined && set == nullptr);
  if (!loaded.ok() && path.empty() && missing) {
    const Status missed = loaded.status();
    const std::string beside = file.empty() ? "" : file + ".disturbed";
    loaded = disturbed_of_late(beside, device);
    if (!loaded.ok()) {
      say(text(missed.message(), "; measuring this machine first"));
      loaded = measured_now(file, beside, device);
    }
  }
  RIDGE_TRY(loaded.status());
  RIDGE_TRY(check_ceilings(*loaded, device, file.empty() ? "this machine" : file));
  warn_if_disturbed(*loaded);
  return loaded;
}

}  // namespace ridge::app
