#pragma once

#include <string_view>

#include "base/status.h"

namespace ridge {

/// Why the kernels do not run on a GPU of that name and compute capability: kDeclined; or ok.
inline Status usable_gpu(std::string_view name, int major, int minor) {
  if (major == 9 && minor == 0) return {};
  return declined(name, " has compute capability ", major, ".", minor,
                  ", the CUDA kernels need 9.0 (H100, H200): run on another GPU, or with --device cpu");
}

}  // namespace ridge
