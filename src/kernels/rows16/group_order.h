#pragma once
// The order in which a thread multiplies its groups of tokens with one tile of weights.

#include <cstdint>

namespace ridge {

/// body(i) for every i of [low, high), from both ends in turns: the same step never comes twice. Results go
/// to y, and stores that are one distance apart again and again have the processor fetch what lies at that
/// distance past the last of them, which is another thread's. Threads whose last-level caches are not the
/// same then take those lines from each other: docs/account.md, "Drift", has what that cost.
template <class Body>
void for_groups_from_both_ends(int64_t low, int64_t high, const Body& body) {
  for (bool up = true; low < high; up = !up) body(up ? low++ : --high);
}

}  // namespace ridge
