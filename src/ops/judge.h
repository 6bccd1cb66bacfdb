#pragma once
// A call that ran, judged by its operator's own description: its outputs against the double-precision
// reference on the inputs that it had, under the bound that conformance holds kernels to.

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/stop.h"
#include "ops/binding.h"
#include "ops/conformance.h"
#include "ops/operator.h"

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

template <class A>
class JudgedCall {
 public:
  JudgedCall(const Operator<A>& op, const A& before, const A& after)
      : op_(op), inputs_(before), after_(after) {}

  Result<Judgement> judge() {
    if (op_.reference == nullptr) return declined(op_.name, " has no reference to be judged by");
    Dims dims;
    RIDGE_TRY(bind(op_, inputs_, &dims));
    for (const auto& o : op_.operands)
      if (Tensor& t = inputs_.*o.field; t && t.layout != nullptr) RIDGE_TRY(own(&t, host_copy(t)));
    RIDGE_ASSIGN(const A reference, referred(false));
    A magnitude{};
    if (op_.tolerance.needs_magnitude) {
      RIDGE_ASSIGN(magnitude, referred(true));
    }
    const Judged<A> judged{inputs_, reference, magnitude, dims};
    for (const auto& o : op_.operands)
      if (o.role != kIn && after_.*o.field) RIDGE_TRY(compare(o, judged));
    return std::move(result_);
  }

 private:
  Status own(Tensor* t, Result<HostOperand> copy) {
    RIDGE_TRY(copy.status());
    memory_.push_back(copy.take());
    *t = memory_.back().tensor();
    return {};
  }

  /// The reference's answer, on |inputs| when `absolute`. Rows of an output that no call writes keep what is
  /// there.
  Result<A> referred(bool absolute) {
    A out = inputs_;
    for (const auto& o : op_.operands) {
      Tensor& t = out.*o.field;
      if (!t) continue;
      if (o.role == kOut) {
        const Tensor got = after_.*o.field;
        const bool narrow = t.dtype == kBF16 || t.dtype == kF16;
        RIDGE_TRY(own(&t, HostOperand::make(narrow ? kF32 : t.dtype, t.shape, Layout::kDense)));
        copy_elements(got, t);
      } else if (o.role != kIn || absolute) {
        RIDGE_TRY(own(&t, host_copy(t)));
        if (absolute) memory_.back().make_absolute(), t = memory_.back().tensor();
      }
    }
    op_.reference(out);
    RIDGE_TRY(check_stop());
    return out;
  }

  /// Rows of a matrix are walked down its columns: bounds keep what they made of a row of weights, which is a
  /// column here.
  Status compare(const Operand<A>& o, const Judged<A>& judged) {
    const Tensor got = after_.*o.field, want = judged.reference.*o.field;
    const auto dim = [&](int d) { return d < got.rank() ? got.dim(d) : 1; };
    const bool matrix = got.rank() == 2;
    for (int64_t first = 0; first < dim(matrix ? 1 : 0); ++first)
      for (int64_t second = 0; second < dim(matrix ? 0 : 1); ++second) {
        RIDGE_TRY(check_stop());
        for (int64_t k = 0; k < dim(2); ++k)
          for (int64_t l = 0; l < dim(3); ++l)
            matrix ? compare(o, judged, got, want, {second, first, 0, 0})
                   : compare(o, judged, got, want, {first, second, k, l});
      }
    return {};
  }

  void compare(const Operand<A>& o, const Judged<A>& judged, const Tensor& got, const Tensor& want,
               const std::array<int64_t, 4>& at) {
    const auto [i, j, k, l] = at;
    const double a = got.f64(i, j, k, l), b = want.f64(i, j, k, l);
    ++result_.compared;
    if (a == b || (std::isnan(a) && std::isnan(b))) return;  // most of a cache's pages
    double bound = op_.tolerance.bound(judged, o.field, i, j, k, l), ratio = 0;
    if (!within(a, b, bound, got.dtype, &ratio) && ratio <= 1) ratio = HUGE_VAL;
    if (!(ratio > result_.ratio)) return;
    if (std::isfinite(ratio)) bound = std::fabs(a - b) / ratio;  // half an ulp of the type included
    result_.ratio = ratio, result_.operand = o.name;
    result_.at.assign(at.begin(), at.begin() + got.rank());
    result_.value = a, result_.wanted = b, result_.bound = bound;
  }

  const Operator<A>& op_;
  A inputs_;
  const A& after_;
  std::vector<HostOperand> memory_;
  Judgement result_;
};

}  // namespace ridge
