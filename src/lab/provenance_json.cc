#include "lab/provenance_json.h"

#include <nlohmann/json.hpp>

#include "base/build.h"
#include "base/clock.h"
#include "lab/probe.h"

namespace ridge {

nlohmann::ordered_json provenance_json(const std::string& command, int64_t runs) {
  return {{"date", utc_now()},
          {"commit", built_commit()},
          {"build", this_machine("").build},
          {"compiler", built_compiler()},
          {"command", command},
          {"runs", runs}};
}

}  // namespace ridge
