#pragma once
// Whether others want this machine's cores.

namespace ridge {

/// Microseconds since boot in which some runnable thread waited for a core (/proc/pressure/cpu); -1: the
/// kernel does not say. Source: Linux, Documentation/accounting/psi.rst.
double waited_for_cores_us();

}  // namespace ridge
