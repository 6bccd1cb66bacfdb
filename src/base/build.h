#pragma once
// What this program was built from. A file of its own: it changes with every commit, and what it says is
// compiled into nothing else.

namespace ridge {

/// A hash over the compiler, its settings and the sources of the kernels: what a machine file is bound to.
const char* built_kernels();
/// The commit, 12 digits; empty where it was built outside of a checkout.
const char* built_commit();

}  // namespace ridge
