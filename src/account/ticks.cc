#include "account/ticks.h"

#include <cpuid.h>

namespace ridge {

bool ticks_are_even() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 8 & 1u) != 0;
}

}  // namespace ridge
