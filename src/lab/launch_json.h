#pragma once
// KernelLaunch as every JSON form shows it: docs/json.md, `launches`.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "runtime/device.h"

namespace ridge {

nlohmann::ordered_json launches_json(const std::vector<KernelLaunch>& launches);

}  // namespace ridge
