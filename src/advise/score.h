#pragma once
// The score: what was predicted, what was measured, one JSON line for each, kept over runs.

#include <string>

#include "lab/advice_record.h"

namespace ridge {

/// One object on one line: docs/json.md. Carries workload, machine and provenance.
std::string advice_json(const AdviceRecord& record);
std::string advice_text(const AdviceRecord& record, bool color);

struct Score {
  int64_t held = 0, refuted = 0, undecided = 0;
  int64_t sign_open = 0;   // of held + refuted: the prediction's interval held 0
  int64_t sign_right = 0;  // of the others
  int64_t unreadable = 0;  // lines
};
std::string score_text(const Score& score);

/// Appends one line: whole, or not at all (a lock; cut back when it fell short, and a file made for it
/// removed). Errors: kIo with path, bytes and the system's reason.
Status append_score(const std::string& path, const AdviceRecord& record);
/// Makes the folders that `path` lacks. Errors, for a path that append_score() would not be able to write:
/// kInvalidArgument, it is no regular file, or has lines and none of them is advice; kIo with the system's
/// reason.
Status prepare_score(const std::string& path);
/// An absent file is an empty score. Lines that are no advice are counted, not fatal.
Result<Score> read_score(const std::string& path);
/// $RIDGE_ADVICE, else advice.jsonl in user_folder(); empty where there is none.
std::string default_score_path();

}  // namespace ridge
