#include "base/build.h"

namespace ridge {

const char* built_kernels() {
  return RIDGE_BUILD;
}
const char* built_commit() {
  return RIDGE_COMMIT;
}

}  // namespace ridge
