#pragma once
// A call that ran, judged by its operator's own description: its outputs against the double-precision
// reference on the inputs that it had, under the bound that conformance holds kernels to.

#include <string>
#include <vector>

#include "ops/host_operand.h"

namespace ridge {

/// The output element that lies furthest from the reference, as a share of its bound.
struct Judgement {
  int64_t compared = 0;  // elements
  double ratio = 0;     // error over bound; infinite where the bound is 0, or one of both is no finite number
  std::string operand;  // of that element, and below its indices, what it is and what it may be
  std::vector<int64_t> at;
  double value = 0, wanted = 0, bound = 0;
  bool beyond() const { return ratio > 1; }
};

/// What a registered operator is besides an AnyOperator.
class CallJudge {
 public:
  virtual ~CallJudge() = default;
  /// Arguments of the operator with operands that the host can read: as they were before the call, and with
  /// its outputs after it. Errors: kDeclined for an operator without a
  /// reference; kCancelled once a stop is requested (base/stop.h); those of memory.
  virtual Result<Judgement> judge(const void* before, const void* after) const = 0;
};

/// A dense copy in memory of its own; packed weights as in the file.
Result<HostOperand> host_copy(const Tensor& t);
/// Copies elements one by one, whatever the types.
void copy_elements(const Tensor& from, const Tensor& to);

class ErasedOperator;
/// CallJudge::judge() of an operator.
Result<Judgement> judge_call(const ErasedOperator& op, const void* before, const void* after);

}  // namespace ridge
