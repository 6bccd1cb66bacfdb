#include "engine/observer.h"

namespace ridge {

const char* stage_name(Stage stage) {
  static const char* const kNames[] = {"tokenize",    "queue",    "prefill",     "decode round",
                                       "kv transfer", "sampling", "network wait"};
  return kNames[static_cast<int>(stage)];
}
const char* phase_name(Phase phase) {
  static const char* const kNames[] = {"prefill", "decode", "mixed"};
  return kNames[static_cast<int>(phase)];
}

}  // namespace ridge
