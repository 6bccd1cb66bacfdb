#include "ops/judge.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/stop.h"
#include "kernels/rows16/unpack.h"
#include "ops/erased_operator.h"

namespace ridge {

void copy_elements(const Tensor& from, const Tensor& to) {
  const auto dim = [&](int d) { return d < from.rank() ? from.dim(d) : 1; };
  for (int64_t i = 0; i < dim(0); ++i)
    for (int64_t j = 0; j < dim(1); ++j)
      for (int64_t k = 0; k < dim(2); ++k)
        for (int64_t l = 0; l < dim(3); ++l) to.set(from.f64(i, j, k, l), i, j, k, l);
}

Result<HostOperand> host_copy(const Tensor& t) {
  RIDGE_ASSIGN(HostOperand out, HostOperand::make(t.dtype, t.shape, Layout::kDense));
  if (t.layout != nullptr)
    rows16::unpack(t, out.tensor().data);
  else if (t.is_dense())
    std::memcpy(out.tensor().data, t.data, static_cast<size_t>(t.bytes()));
  else
    copy_elements(t, out.tensor());
  return out;
}

namespace {

class JudgedCall {
 public:
  JudgedCall(const ErasedOperator& op, const void* before, const void* after)
      : op_(op), inputs_(op.clone_args(before)), after_(after) {}

  Result<Judgement> judge() {
    if (!op_.has_reference()) return declined(op_.name(), " has no reference to be judged by");
    Dims dims;
    RIDGE_TRY(op_.bind(inputs_.get(), &dims));
    for (size_t i = 0; i < op_.operands().size(); ++i)
      if (Tensor& t = at(inputs_, i); t && t.layout != nullptr) RIDGE_TRY(own(&t, host_copy(t)));
    RIDGE_ASSIGN(const std::shared_ptr<void> reference, referred(false));
    std::shared_ptr<void> magnitude = op_.new_args();
    if (op_.needs_magnitude()) {
      RIDGE_ASSIGN(magnitude, referred(true));
    }
    const JudgedArgs judged{inputs_.get(), reference.get(), magnitude.get(), dims};
    for (size_t i = 0; i < op_.operands().size(); ++i)
      if (op_.operands()[i].role != kIn && op_.operand_at(after_, i)) RIDGE_TRY(compare(i, judged));
    return std::move(result_);
  }

 private:
  Tensor& at(const std::shared_ptr<void>& args, size_t operand) const {
    return op_.operand(args.get(), static_cast<int>(operand));
  }
  Status own(Tensor* t, Result<HostOperand> copy) {
    RIDGE_TRY(copy.status());
    memory_.push_back(copy.take());
    *t = memory_.back().tensor();
    return {};
  }

  /// The reference's answer, on |inputs| when `absolute`. Rows of an output that no call writes keep what is
  /// there.
  Result<std::shared_ptr<void>> referred(bool absolute) {
    std::shared_ptr<void> out = op_.clone_args(inputs_.get());
    for (size_t i = 0; i < op_.operands().size(); ++i) {
      const Role role = op_.operands()[i].role;
      Tensor& t = at(out, i);
      if (!t) continue;
      if (role == kOut) {
        const Tensor got = op_.operand_at(after_, i);
        const bool narrow = t.dtype == kBF16 || t.dtype == kF16;
        RIDGE_TRY(own(&t, HostOperand::make(narrow ? kF32 : t.dtype, t.shape, Layout::kDense)));
        copy_elements(got, t);
      } else if (role != kIn || absolute) {
        RIDGE_TRY(own(&t, host_copy(t)));
        if (absolute) memory_.back().make_absolute(), t = memory_.back().tensor();
      }
    }
    op_.reference(out.get());
    RIDGE_TRY(check_stop());
    return out;
  }

  /// Rows of a matrix are walked down its columns: bounds keep what they made of a row of weights, which is a
  /// column here.
  Status compare(size_t operand, const JudgedArgs& judged) {
    const Tensor got = op_.operand_at(after_, operand), want = op_.operand_at(judged.reference, operand);
    const auto dim = [&](int d) { return d < got.rank() ? got.dim(d) : 1; };
    const bool matrix = got.rank() == 2;
    for (int64_t first = 0; first < dim(matrix ? 1 : 0); ++first)
      for (int64_t second = 0; second < dim(matrix ? 0 : 1); ++second) {
        RIDGE_TRY(check_stop());
        for (int64_t k = 0; k < dim(2); ++k)
          for (int64_t l = 0; l < dim(3); ++l)
            matrix ? compare(operand, judged, got, want, {second, first, 0, 0})
                   : compare(operand, judged, got, want, {first, second, k, l});
      }
    return {};
  }

  void compare(size_t operand, const JudgedArgs& judged, const Tensor& got, const Tensor& want,
               const std::array<int64_t, 4>& where) {
    const auto [i, j, k, l] = where;
    const double a = got.f64(i, j, k, l), b = want.f64(i, j, k, l);
    ++result_.compared;
    if (a == b || (std::isnan(a) && std::isnan(b))) return;  // most of a cache's pages
    double bound = op_.bound(judged, operand, i, j, k, l), ratio = 0;
    if (!within(a, b, bound, got.dtype, &ratio) && ratio <= 1) ratio = HUGE_VAL;
    if (!(ratio > result_.ratio)) return;
    if (std::isfinite(ratio)) bound = std::fabs(a - b) / ratio;  // half an ulp of the type included
    result_.ratio = ratio, result_.operand = op_.operands()[operand].name;
    result_.at.assign(where.begin(), where.begin() + got.rank());
    result_.value = a, result_.wanted = b, result_.bound = bound;
  }

  const ErasedOperator& op_;
  std::shared_ptr<void> inputs_;
  const void* after_;
  std::vector<HostOperand> memory_;
  Judgement result_;
};

}  // namespace

Result<Judgement> judge_call(const ErasedOperator& op, const void* before, const void* after) {
  return JudgedCall(op, before, after).judge();
}

}  // namespace ridge
