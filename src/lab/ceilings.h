#pragma once
// The ceilings that a verdict may use: those of this device, of as many threads, and with what is to be said
// of them.

#include "lab/probe.h"

namespace ridge {

/// Refuses the ceilings of `name` where none are of as many threads as `device` has: those of fewer would be
/// too low, those of more too high. Errors: kDeclined with the counts.
Status check_ceilings(const Machine& machine, const Device& device, const std::string& name);

/// Logs a warning when other work ran while they were measured, which may make every verdict wrong.
void warn_if_disturbed(const Machine& machine);

}  // namespace ridge
