#pragma once
// An operator's description and kernels with the type of their arguments erased. Argument check, account,
// dispatch, examples, conformance and the judge are written on this, once for all operators; what touches an
// Args type itself is Registered<A> (ops/registry.h), a line each.

#include "ops/any_operator.h"
#include "ops/judge.h"

namespace ridge {

/// A case as the erased code sees it; ErasedOperator::set_case() does what its function did.
struct CaseInfo {
  std::vector<int64_t> dims;
  unsigned flags;
  const char* name;
};

/// What a bound may look at: arguments of the operator, as Judged<A> has them.
struct JudgedArgs {
  const void* inputs;
  const void* reference;
  const void* magnitude;
  const Dims& dims;
};

class ErasedOperator : public AnyOperator, public CallJudge {
 public:
  const char* name() const override { return name_; }
  const std::vector<OperandInfo>& operands() const override { return operands_; }
  /// Nothing where this build has no kernel for it: then the sequence is what runs.
  const std::vector<const char*>& replaces() const override;
  std::vector<std::string> params() const override;
  std::vector<KernelInfo> kernels() const override { return kernels_; }

  Status set_param(void* args, std::string_view name, double value) const override;
  Result<double> get_param(const void* args, std::string_view name) const override;
  std::optional<Count> count(const void* args, std::string_view name) const override;
  void batch_values(const void* args, std::vector<int64_t>* out) const override;
  void batch_sources(const void* args, std::vector<std::pair<const void*, int64_t>>* out) const override;
  std::shared_ptr<const void> args_of_now(const void* args) const override;

  Status check(const void* args) const override;
  Result<Selection> select(const Target& target, const void* args) const override;
  Status run(const Selection& s, Stream& stream, const void* args) const override;
  const char* kernel_name(const Selection& s) const override;
  Cost cost(const Selection& selection, const void* args) const override;
  std::string shape(const void* args) const override;

  ConformanceReport conform(const ConformanceOptions& options) const override;
  Result<Judgement> judge(const void* before, const void* after) const override;
  Result<AnyCall> example(const Target& target, const std::vector<int64_t>& case_dims,
                          const std::map<std::string, DType>& dtypes, uint64_t seed,
                          std::vector<Buffer>* storage) const override;
  size_t pace_cases() const override { return pace_.size(); }
  Result<AnyCall> pace_example(const Target& target, size_t index, const std::map<std::string, DType>& dtypes,
                               uint64_t seed, std::vector<Buffer>* storage) const override;
  const char* case_dims() const override { return case_dims_; }
  std::vector<std::vector<int64_t>> bench_cases() const override;

  /// Checks every operand of a call and fills `dims` with the symbols and counts.
  Status bind(const void* args, Dims* dims) const;
  /// The counts alone.
  void add_counts(const void* args, Dims* dims) const;
  const std::vector<CaseInfo>& cases() const { return cases_; }
  const Tensor& operand_at(const void* args, size_t index) const {
    return operand(const_cast<void*>(args), static_cast<int>(index));
  }

  // The description's own functions. Where it has none of that kind: nothing is checked, prepared or set,
  // every choice exists, a bound is 0.
  virtual Status check_further(const void* args, const Dims& dims) const = 0;
  virtual void prepare(void* args, const Dims& dims, Random& random) const = 0;
  virtual bool choice_exists(const void* args) const = 0;
  virtual bool has_reference() const = 0;
  virtual void reference(const void* args) const = 0;
  /// Scalar arguments of a case; of the cases to check, or of those that set the pace.
  virtual void set_case(size_t index, void* args) const = 0;
  virtual void set_pace_case(size_t index, void* args) const = 0;
  virtual bool needs_magnitude() const = 0;
  /// Largest allowed error of element [i, j, k, l] of that operand, before half an output ulp is added.
  virtual double bound(const JudgedArgs& judged, size_t operand, int64_t i, int64_t j, int64_t k,
                       int64_t l) const = 0;
  /// The operand that is packed, -1: none; and the rest of Pack.
  virtual int packed_operand() const = 0;
  virtual Decline kernel_declines(size_t kernel, const void* args) const = 0;
  virtual int64_t kernel_workspace(size_t kernel, const void* args) const = 0;
  virtual Status run_kernel(size_t kernel, Stream& stream, const void* args) const = 0;

 protected:
  enum class ParamType : uint8_t { kFloat, kInt64, kBool, kUint64 };
  struct ParamInfo {
    const char* name;
    ParamType type;
  };

  virtual Count& count_at(void* args, size_t index) const = 0;
  virtual void* param_at(void* args, size_t index) const = 0;
  /// The chunks of the batch, where a description says where they are; else null.
  virtual std::shared_ptr<const std::vector<QueryChunk>>* chunks_at(void* args) const = 0;
  virtual int64_t flops(const Dims& dims) const = 0;
  /// Nothing: as many as the description's own count.
  virtual std::optional<int64_t> executed_flops(size_t kernel, const void* args) const = 0;
  virtual std::optional<int64_t> touched(size_t operand, const Dims& dims) const = 0;
  virtual std::string lengths(const void* args) const = 0;
  /// The values of all symbols, in the order of first mention: "2x576".
  std::string default_shape(const void* args) const;

  const Count& count_at(const void* args, size_t index) const {
    return count_at(const_cast<void*>(args), index);
  }
  const std::vector<QueryChunk>* chunks_of(const void* args) const {
    const auto* chunks = chunks_at(const_cast<void*>(args));
    return chunks != nullptr ? chunks->get() : nullptr;
  }

  const char* name_ = "";
  const char* case_dims_ = "";
  std::vector<OperandInfo> operands_;
  std::vector<ParamInfo> params_;
  std::vector<const char*> counts_;
  std::vector<const char*> replaces_;
  std::vector<CaseInfo> cases_, pace_;
  std::vector<KernelInfo> kernels_;
  bool of_prompts_ = false;  // its calls say where each sequence's queries start

 private:
  Result<std::shared_ptr<void>> example_args(const Target& target, const std::vector<int64_t>& case_dims,
                                             const std::map<std::string, DType>& dtypes, uint64_t seed,
                                             std::vector<Buffer>* storage) const;
};

}  // namespace ridge
