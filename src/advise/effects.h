#pragma once
// What each kind of lever does to the rows of the account.

#include <string>
#include <vector>

#include "advise/predict.h"

namespace ridge {

struct Affected {
  const ProfilePhase* phase = nullptr;
  const ProfileRow* row = nullptr;
  Interval then_us;
};

struct Effect {
  std::vector<Affected> rows;
  Interval added_us;    // of calls that do not exist yet
  std::string refusal;  // not empty: cannot be priced or changes nothing, and why
  std::string term;     // the term of the account that the lever shortens or lengthens
};

Effect activations_effect(const Profile& profile, const Lever& lever);
Effect kv_effect(const Profile& profile, const Lever& lever);
Effect threads_effect(const Profile& profile, const Lever& lever);
Effect chunk_effect(const Profile& profile, const Lever& lever);
Effect fusion_effect(const Profile& profile, const Lever& lever, const FusedOperator& fused);

/// Bytes of an element of a KV format by name (f32, f16, bf16, q8), 0: unknown.
int64_t kv_width(const std::string& format);

/// How `batch` prompts run, first come, first served, at most `chunk` tokens a step over all of them: steps,
/// and the cached tokens that they read.
struct Chunks {
  int64_t steps = 0, keys = 0;
};
Chunks chunks_of(int64_t prompt, int64_t batch, int64_t chunk);

/// "compute 61 %, memory 30 %" of the limits of some rows.
std::string bounds_text(const std::vector<Affected>& rows);

}  // namespace ridge
