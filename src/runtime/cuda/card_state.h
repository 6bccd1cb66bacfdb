#pragma once
// What a GPU's own sensors say: clocks, power, temperature.

#include <string>
#include <vector>

namespace ridge {

struct CardReading {
  std::string what;  // "SM clock"
  double value = 0;
  std::string unit;  // "MHz", "W", "C"
};

/// Of the `ordinal`-th GPU, by NVIDIA's management library, which is loaded where the machine has it; empty
/// where it has not, and without a sensor that it does not read.
std::vector<CardReading> card_state(int ordinal);

}  // namespace ridge
