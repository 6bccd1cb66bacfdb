#pragma once
// What is refused before anything runs: a file that would be read and written at once, and options that the
// chosen mode does not use.

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/status.h"
#include "verbs.h"

namespace ridge::app {

/// A file of the command line: what the user calls it ("MODEL", "--report") and its path. Empty: none.
struct NamedFile {
  std::string name, path;
};

/// Refuses an output that is the same file as an input, as another output or as what stdout and stderr were
/// redirected to. Files that exist are compared by device and inode, so through links as well; others by the
/// folder that they would be in, links followed, and their name.
/// Errors: kInvalidArgument naming both and the path.
Status check_apart(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs);

/// The model file of a verb; none where it is synthetic.
NamedFile model_input(const CommonOptions& common);
/// The machine file that a verb reads: --machine, else the kept one of this device and instruction set
/// (empty `isa`: the processor's own).
NamedFile machine_input(const std::string& given, const std::string& device, const std::string& isa);

/// Where `option` says to write, before what is written costs a minute; "" is nowhere.
/// Errors: kInvalidArgument, naming option and path: no folder is there, or none that can be written.
Status check_output_file(const char* option, const std::string& path);

/// Refuses those of `options` that the user gave to `verb`.
/// Errors: kInvalidArgument, "OPTION is WHY: leave it out".
Status refuse_given(const CLI::App& verb, std::initializer_list<const char*> options, const std::string& why);

}  // namespace ridge::app
