#pragma once
// What an account, a timeline or a test may see of each step.

#include <cstdint>
#include <vector>

#include "plan/step_plan.h"

namespace ridge {

/// Stages of a request, on one clock. Fixed names: tokenize, queue, prefill, decode round, kv transfer,
/// sampling, network wait.
enum class Stage : uint8_t {
  kTokenize,
  kQueue,
  kPrefill,
  kDecodeRound,
  kKvTransfer,
  kSampling,
  kNetworkWait
};
const char* stage_name(Stage stage);

enum class Phase : uint8_t { kPrefill, kDecode, kMixed };
const char* phase_name(Phase phase);  // "prefill", "decode", "mixed"

struct StepFacts {
  Phase phase = Phase::kPrefill;
  int64_t decode_tokens = 0, prefill_tokens = 0, logit_rows = 0;
  int64_t begin_ns = 0;         // the step's first instant on the host: scheduling included
  int64_t calls_begin_ns = 0;   // the first call starts
  std::vector<CallTime> calls;  // by call of the plan
  int64_t end_ns = 0;           // tokens are with the caller
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// After a step; `plan` is what ran, its counters still those of the step.
  virtual void on_step(const StepFacts& facts, const StepPlan& plan) = 0;
  /// For debugging: with true, on_call comes after every call, while its outputs still hold what it wrote.
  virtual bool wants_calls() const { return false; }
  virtual void on_call(const StepPlan&, size_t) {}
  /// A request spent [begin, end) in a stage.
  virtual void on_stage(int64_t request, Stage stage, int64_t begin_ns, int64_t end_ns) = 0;
};

}  // namespace ridge
