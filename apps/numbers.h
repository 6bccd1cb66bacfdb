#pragma once
// Values on the command line, read strictly: what does not fit the option's type is refused, never cut to
// what fits, and nothing is not taken for the default.

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace ridge::app {

/// Every value that the user gave to an option of `verb`, once more and strictly.
/// Errors: kInvalidArgument naming option and text: not a whole number of 64 bits, negative where only
/// positive ones exist, not finite; empty, where nothing is not a value (a prompt may be empty).
Status check_values(const CLI::App& verb);

/// Of a command line that could not be read: an option that is given more often than it takes values, or a
/// value that does not fit it, in `cli` and its verbs. `said`: CLI11's own words, which name the option whose
/// value it could not convert: others may be of 64 bits. Ok where it is neither.
/// Errors: kInvalidArgument naming option, values and what to do.
Status check_read(const CLI::App& cli, const std::string& said);

}  // namespace ridge::app
