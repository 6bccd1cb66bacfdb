#include "run.h"

int main() {
  return run_rms_norm();
}
