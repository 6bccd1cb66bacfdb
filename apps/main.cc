#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "verbs.h"

namespace ridge::app {

namespace {
volatile std::sig_atomic_t g_interrupted = 0;
}

bool interrupted() {
  return g_interrupted != 0;
}
void watch_interrupts() {
  struct sigaction action = {};
  // The second Ctrl-C ends the program at once.
  action.sa_handler = [](int) { g_interrupted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) != 0;
}
bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}
Status interruption() {
  return Status(Code::kCancelled, "interrupted");
}

static int run(int argc, char** argv) {
  CLI::App cli("Ridge: LLM inference operators that account for themselves, and an engine on them.", "ridge");
  cli.require_subcommand(1);
  cli.set_version_flag("--version", RIDGE_VERSION);
  cli.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong command line, 130 interrupted.\n'ridge VERB --help' shows "
      "options and examples.");
  const Command commands[] = {add_run(cli),   add_profile(cli), add_bench(cli), add_advise(cli),
                              add_probe(cli), add_inspect(cli), add_doctor(cli)};
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = cli.exit(e);
    return code == 0 ? kDone : kUsage;
  }
  watch_interrupts();
  for (const Command& c : commands) {
    if (!c.cli->parsed()) continue;
    const Status status = c.chosen();
    if (status.ok()) return kDone;
    std::fflush(stdout);
    if (status.code() == Code::kCancelled) return kInterrupted;
    std::fprintf(stderr, "ridge: %s\n", status.message().c_str());
    return kFailed;
  }
  return kUsage;
}

}  // namespace ridge::app

int main(int argc, char** argv) {
  return ridge::app::run(argc, argv);
}
