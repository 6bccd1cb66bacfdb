#pragma once
// ridge run --compare: one prompt in two configurations, to find a wrong operator.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "verbs.h"

namespace ridge::app {

/// `sides`: two, each the common options with some changed, "isa=scalar activations=f32 kv=f32 threads=1
/// no-fuse=all". Prints what was found; kDeclined naming the first call beyond its operator's bound, or the
/// first difference beyond `bound`.
Status compare_runs(const CommonOptions& common, const std::vector<std::string>& sides,
                    std::optional<double> bound,
                    const std::function<Result<std::vector<int32_t>>(const Session&)>& encode);

}  // namespace ridge::app
