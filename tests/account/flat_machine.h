#pragma once

#include "machine/machine.h"

namespace ridge {

/// A machine of one thread that gives the same bytes a second from every level and in every piece, and the
/// same operations a second on every engine.
inline Machine flat_machine(double bytes_a_second, double flops) {
  ThreadCeilings c;
  c.threads = 1;
  const double gb = bytes_a_second / 1e9;
  c.curve = {{1 << 10, gb, gb, gb}, {int64_t{1} << 40, gb, gb, gb}};
  c.pieces = {{1 << 10, gb}, {int64_t{1} << 40, gb}};
  c.flops.fill(flops);
  Machine m;
  m.by_threads = {c};
  return m;
}

}  // namespace ridge
