#pragma once
// Where a figure comes from, for JSON of programs that take no machine file.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ridge {

/// `date` (now), `commit`, `build`, `compiler`, `command` and `runs`: docs/json.md.
nlohmann::ordered_json provenance_json(const std::string& command, int64_t runs);

}  // namespace ridge
