#pragma once
// The verbs of the ridge program, one file each. Each adds its subcommand and returns what to run when it was
// chosen.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "engine/session.h"
#include "lab/profile.h"
#include "lab/workload.h"

namespace ridge::app {

/// Exit codes of every verb: 0 done; 1 it failed; 2 what was asked for is wrong (an option, a value, a
/// prompt); 130 Ctrl-C. With 1 and 2 one line on stderr says why.
enum Exit : int { kDone = 0, kFailed = 1, kUsage = 2, kInterrupted = 130 };

using Verb = std::function<Status()>;
/// Adds a subcommand to `cli`; `chosen` is called by main when the user named it.
struct Command {
  CLI::App* cli = nullptr;
  Verb chosen;
};

Command add_run(CLI::App& cli);
Command add_inspect(CLI::App& cli);
Command add_probe(CLI::App& cli);
Command add_profile(CLI::App& cli);
Command add_advise(CLI::App& cli);
Command add_bench(CLI::App& cli);
Command add_doctor(CLI::App& cli);

/// The machine file at `path`, or with an empty path the device's kept one, measured anew when it is missing
/// or stale, and kept when the machine was idle. kDeclined when it has no ceilings of so many threads.
Result<Machine> machine_for(const std::string& path, Device& device);

/// That an operator has no kernel on `backend`, and what runs instead; empty when it has one.
std::string why_no_kernel(const AnyOperator& op, const std::string& backend);

void add_workload_options(CLI::App& cli, WorkloadOptions* options);

/// A number of threads: 0 and less are refused, for an option that is left out has its default, and so are
/// more than any device takes.
CLI::Validator thread_count();

/// Options that several verbs share.
struct CommonOptions {
  std::string model, device = "cpu", isa, activations, kv, assume_pre;
  int threads = 0;
  int64_t context = 0, page_size = 64, prefill_tokens = 512;
  std::vector<std::string> without_fusions;
  bool json = false, synthetic = false, without_graphs = false, without_look_ahead = false;
  void add_to(CLI::App& cli, bool needs_model = true);
  /// Checked and turned into what Session::open takes.
  Result<SessionOptions> session() const;
  /// With room for the workload's requests. Errors: --batch out of range, by that name.
  Result<SessionOptions> session(const WorkloadOptions& workload) const;
};

/// The command line as provenance carries it: paths by their last part.
const std::string& command_line();

/// Set by Ctrl-C; verbs look at it between steps.
bool interrupted();
void watch_interrupts();
bool stderr_is_terminal();
bool stdout_is_terminal();
/// A terminal, and NO_COLOR is not set or empty (no-color.org).
bool stdout_takes_colour();

/// A kCancelled Status for Ctrl-C.
Status interruption();

/// One line on stderr, behind "ridge: ". The one way there for what holds text from a file or a user: nothing
/// in it drives the terminal or begins another line.
void say(std::string_view line);

/// Flushes stdout. kIo when what was printed has not arrived: the disk is full, or the output is closed.
/// Verbs that print for long look at it as they go; main does at the end of each.
Status check_output();

}  // namespace ridge::app
