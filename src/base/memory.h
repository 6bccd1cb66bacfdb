#pragma once
// How much memory this process may still take, so that a plan beyond it is refused at the start (case I61)
// instead of being killed for it later.

#include <cstdint>
#include <string>

#include "base/status.h"

namespace ridge {

struct MemoryRoom {
  int64_t bytes;    // that can be taken; page cache counts as free, the kernel gives it back
  std::string why;  // what binds: "the machine's available memory", "memory.max of cgroup /a is 1.00 GiB"
};

/// The least of what the machine has available and what each control group (version 1 or 2) above this
/// process leaves. Errors: kNotFound when /proc/meminfo says nothing. Other roots than the system's are for
/// tests.
Result<MemoryRoom> memory_room(const std::string& proc = "/proc",
                               const std::string& cgroups = "/sys/fs/cgroup");

/// kResourceExhausted, naming both numbers and what binds, when `bytes` for `what` are more than
/// memory_room(); ok also when the room is not known.
Status check_memory(int64_t bytes, std::string_view what);

}  // namespace ridge
