#include "lab/launch_json.h"

#include <nlohmann/json.hpp>

namespace ridge {

nlohmann::ordered_json launches_json(const std::vector<KernelLaunch>& launches) {
  auto list = nlohmann::ordered_json::array();
  for (const KernelLaunch& k : launches)
    list.push_back({{"kernel", k.kernel},
                    {"blocks", k.blocks},
                    {"threads", k.threads},
                    {"registers", k.registers},
                    {"static_shared_bytes", k.static_shared_bytes},
                    {"dynamic_shared_bytes", k.dynamic_shared_bytes},
                    {"local_bytes", k.local_bytes},
                    {"blocks_fitting", k.blocks_fitting},
                    {"occupancy", k.occupancy}});
  return list;
}

}  // namespace ridge
