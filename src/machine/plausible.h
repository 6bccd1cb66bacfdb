#pragma once
// What no machine measures: a machine file that was edited or torn, and a probe that other work disturbed.

#include "machine/machine.h"

namespace ridge {

/// Every figure finite and in a range that hardware can have, sizes and thread counts ascending.
/// Errors: kCorrupt naming field and value.
Status check_machine(const Machine& machine);

/// An idle machine of two threads is probed in about 30; a probe that takes longer leaves repetitions out.
inline constexpr double kProbeSeconds = 40;

/// Empty, or what shows that the probe did not have the machine to itself: threads that waited for cores, a
/// probe that took longer than kProbeSeconds, or more threads with less of what each brings along.
std::string disturbed(const Machine& machine);

}  // namespace ridge
