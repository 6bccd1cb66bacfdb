#pragma once

#include <nlohmann/json.hpp>

#include "lab/profile.h"

namespace ridge {

/// The object that every JSON object, result row and chart carries: docs/json.md.
nlohmann::ordered_json workload_json(const Workload& workload);

}  // namespace ridge
