#pragma once
// What the tests of verdicts and of rows both ask for.

#include <numeric>

#include "account/verdict.h"

namespace ridge {

inline double sum_of_losses(const Verdict& v) {
  return std::accumulate(v.loss_us.begin(), v.loss_us.end(), 0.0);
}

}  // namespace ridge
