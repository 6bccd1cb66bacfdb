#pragma once

#include "advise/predict.h"

namespace ridge {

inline const std::vector<FusedOperator> kFused = {{"add_rms_norm", {"add", "rms_norm"}}};

}  // namespace ridge
