#pragma once

#include <string>

#include "base/text.h"

namespace ridge {

/// "" when a kernel takes the call, else the reason why not.
struct Decline {
  std::string reason;
  explicit operator bool() const { return !reason.empty(); }
};
template <class... P>
Decline decline(const P&... parts) {
  return {text(parts...)};
}

}  // namespace ridge
