#include "run.h"

int main(void) {
  return run_rms_norm();
}
