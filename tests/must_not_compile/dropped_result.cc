// A value made and thrown away, its error with it.
// expect: ignoring.*nodiscard
#include "base/status.h"
ridge::Result<int> count();
int f() {
#ifdef MISUSE
  count();
#endif
  auto counted = count();
  return counted.ok() ? *counted : 0;
}
