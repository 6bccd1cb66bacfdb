// A description whose operand is a field of another operator's arguments.
// expect: (cannot convert|could not convert|no match|different classes)
#include "ops/operator.h"
namespace ridge {
struct OneArgs {
  Tensor y;
};
struct OtherArgs {
  Tensor x;
};
Operand<OneArgs> f() {
#ifdef MISUSE
  return {"x", &OtherArgs::x, kOut, kActivations, "rows", {kF32}};
#else
  return {"y", &OneArgs::y, kOut, kActivations, "rows", {kF32}};
#endif
}
}  // namespace ridge
