#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/stop.h"
#include "base/visible.h"
#include "numbers.h"
#include "verbs.h"

namespace ridge::app {

bool interrupted() {
  return stop_requested();
}
void watch_interrupts() {
  struct sigaction action = {};
  // The second Ctrl-C ends the program at once.
  action.sa_handler = [](int) { request_stop(); };
  // Without SA_RESTART, so that a chat waiting for a line ends too.
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) != 0;
}
bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}
bool stdout_takes_colour() {
  const char* const no = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (no == nullptr || *no == 0);
}
Status interruption() {
  return Status(Code::kCancelled, "interrupted");
}
void say(std::string_view line) {
  std::fflush(stdout);
  std::fprintf(stderr, "ridge: %s\n", visible(line).c_str());
}
Status check_output() {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return {};
  return io_error("cannot write the output: the disk is full, or nobody reads it");
}

namespace {

std::string g_command;

/// The command line for provenance: paths by their last part, words with spaces quoted.
std::string command_of(int argc, char** argv) {
  std::string command = "ridge";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (std::error_code error; word.find('/') != std::string::npos && std::filesystem::exists(word, error))
      word = std::filesystem::path(word).filename();
    command += word.find_first_of(" \t\n\"'") == std::string::npos && !word.empty() ? " " + word
                                                                                    : " " + printable(word);
  }
  return command;
}

/// Where the caller closed a standard stream, the next file would take its number: a model file would be read
/// as the prompts, or written over by errors. Nobody's prompts are none; an output that was closed cannot be
/// written.
bool open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF &&
        open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
      return false;
  return true;
}

int report(const Status& status) {
  if (status.ok()) return kDone;
  std::fflush(stdout);
  if (status.code() == Code::kCancelled) return kInterrupted;
  say(status.message());
  return status.code() == Code::kInvalidArgument ? kUsage : kFailed;
}

}  // namespace

const std::string& command_line() {
  return g_command;
}

static int run(int argc, char** argv) {
  CLI::App cli("Ridge: LLM inference operators that account for themselves, and an engine on them.", "ridge");
  cli.require_subcommand(0, 1);
  cli.set_version_flag("--version", RIDGE_VERSION);
  cli.footer(
      "Exit codes: 0 done, 1 failed, 2 what was asked for is wrong (an option, a value, a prompt), 130 "
      "interrupted.\n'ridge VERB --help' shows "
      "options and examples.");
  const Command commands[] = {add_run(cli),   add_profile(cli), add_bench(cli), add_advise(cli),
                              add_probe(cli), add_inspect(cli), add_doctor(cli)};
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      cli.exit(e);
      return report(check_output());
    }
    // What of the values is wrong is told by option and value, as everywhere.
    const bool of_values = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch) ||
                           e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ConversionError);
    if (const Status why = of_values ? check_read(cli, e.what()) : Status(); !why.ok()) return report(why);
    say(text(e.what(), "; --help tells what there is"));
    return kUsage;
  }
  g_command = command_of(argc, argv);
  watch_interrupts();
  for (const Command& c : commands) {
    if (!c.cli->parsed()) continue;
    Status status = check_values(*c.cli);
    for (const CLI::App* part : c.cli->get_subcommands())
      if (status.ok()) status = check_values(*part);
    if (status.ok()) status = c.chosen();
    if (status.ok()) status = check_output();
    return report(status);
  }
  say("what to do is missing: give a verb, as in 'ridge run MODEL'; --help tells what there is");
  return kUsage;
}

}  // namespace ridge::app

int main(int argc, char** argv) {
  if (!ridge::app::open_standard_streams()) return ridge::app::kFailed;
  return ridge::app::run(argc, argv);
}
