#pragma once
// Copies of one call for 'ridge bench --op': the same values, memory of their own, so that a call finds none
// of its operands in a cache.

#include <vector>

#include "ops/any_operator.h"

namespace ridge::app {

struct CallCopies {
  std::vector<AnyCall> calls;
  Buffer memory;
};

/// What copies_of() takes for one copy.
int64_t copy_bytes(const AnyCall& call);
/// `count` copies of a call whose operands the host reads, in memory of `device`.
/// Errors: those of the device; kCancelled between two copies once a stop is requested.
Result<CallCopies> copies_of(Device& device, const AnyCall& call, int64_t count);

}  // namespace ridge::app
