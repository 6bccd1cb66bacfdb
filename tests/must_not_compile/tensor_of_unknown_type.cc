// Elements of a type that no operator has.
// expect: kDTypeOf
#include "tensor/tensor.h"
ridge::Tensor f(float* x, long double* y) {
#ifdef MISUSE
  (void)x;
  return {y, {4}};
#else
  (void)y;
  return {x, {4}};
#endif
}
