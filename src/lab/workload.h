#pragma once
// Workloads: what is run, described, and a prompt for those that bring none.

#include "lab/profile.h"

namespace ridge {

/// Everything about a session that a figure must carry; lengths and batch are the caller's to fill in.
Workload workload_of(const Session& session, const EngineOptions& options, const std::string& device);

/// A plain paragraph.
const char* fixed_text();

/// `tokens` ids of it, repeated as often as that takes, behind what the tokenizer puts in front of a prompt.
Result<std::vector<int32_t>> plain_prompt(const Session& session, int64_t tokens);

}  // namespace ridge
