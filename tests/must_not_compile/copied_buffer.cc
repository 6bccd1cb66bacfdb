// Two owners of the same memory.
// expect: (use of deleted function|implicitly.deleted)
#include "tensor/tensor.h"
ridge::Buffer f(ridge::Buffer a) {
#ifdef MISUSE
  return ridge::Buffer(static_cast<const ridge::Buffer&>(a));
#else
  return ridge::Buffer(std::move(a));
#endif
}
