#include "base/pressure.h"

#include <cstdio>

namespace ridge {

double waited_for_cores_us() {
  std::FILE* file = std::fopen("/proc/pressure/cpu", "r");
  if (file == nullptr) return -1;
  double us = -1;
  if (std::fscanf(file, "some %*s %*s %*s total=%lf", &us) != 1) us = -1;
  std::fclose(file);
  return us;
}

}  // namespace ridge
