// An error that nobody looks at.
// expect: ignoring.*nodiscard
#include "base/status.h"
ridge::Status save();
void f() {
#ifdef MISUSE
  save();
#else
  save().ignore();
#endif
}
