#include "base/random.h"

#include <cmath>

namespace ridge {

float Random::normal() {
  const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform()));
  return radius * std::cos(6.2831853f * uniform());
}

}  // namespace ridge
