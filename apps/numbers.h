#pragma once
// Numbers on the command line, read strictly: what does not fit the option's type is refused, never cut to
// what fits.

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace ridge::app {

/// Every number that the user gave to an option of `verb`, once more and strictly.
/// Errors: kInvalidArgument naming option and text: not a whole number of 64 bits, negative where only
/// positive ones exist, not finite.
Status check_numbers(const CLI::App& verb);

}  // namespace ridge::app
