#pragma once

#include "lab/advice_record.h"

namespace ridge {

/// A tested lever, a declined one with a hostile reason.
inline AdviceRecord example_advice(const Profile& p) {
  AdviceRecord a;
  a.workload = p.workload, a.cpu = p.machine.cpu, a.isa = p.machine.isa, a.threads = p.threads;
  a.date = p.date, a.commit = p.commit;
  a.considered = {
      {{"activations", "f32", "int8"},
       true,
       false,
       "arithmetic and unpacking of linear's quantized weights; these rows take 91.2 % of the time, their "
       "limit is compute 98 %, memory 2 %; between 55.1 % less and 72.5 % less time",
       {0.551, 0.638, 0.725}},
      {{"kv", "f16", "q8"}, true, true, "its term does not bind: <b>KV bytes</b>", {-0.01, 0.001, 0.012}}};
  a.chosen = 0;
  a.block_gains = {0.61, 0.62, 0.6, 0.63, 0.62, 0.615, 0.66, 0.622};
  a.interval_known = true, a.measured = {0.6, 0.62, 0.66}, a.confidence = 0.95;
  a.original_us = 220000, a.changed_us = 83600, a.first_original_us = 300000, a.first_changed_us = 120000;
  a.decision = Decision::kHeld,
  a.decision_reason = "the measured interval excludes 0 and meets the predicted one";
  a.changes_numerics = true;
  a.quality = {true, 47, 1.2e-3, 9.1e-3, 0.979};
  return a;
}

}  // namespace ridge
