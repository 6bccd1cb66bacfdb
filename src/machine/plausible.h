#pragma once
// What no machine measures: a machine file that was edited or torn, and a probe that other work disturbed.

#include "machine/machine.h"

namespace ridge {

/// Every figure finite and in a range that hardware can have, sizes and thread counts ascending.
/// Errors: kCorrupt naming field and value.
Status check_machine(const Machine& machine);

/// Empty, or what shows that the probe did not have the machine to itself: threads that waited for cores, or
/// more threads with less of what each brings along.
std::string disturbed(const Machine& machine);

}  // namespace ridge
