#pragma once
// Conformance: every case of a description on every kernel that takes it, against the double-precision
// reference. Outputs and unowned memory start as NaN, gaps between rows are poisoned, guard bytes lie round
// each operand.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/host_operand.h"
#include "ops/operator.h"

namespace ridge {

struct ConformanceOptions {
  Device* device = nullptr;
  Isa only = Isa::none;  // a CPU instruction set, or all that the device's target allows
  bool slow = false;     // cases flagged kSlow and kBench too
  int64_t every = 1;     // of the choices of types, operands and layouts only each so-manieth: for sanitizers
  uint64_t seed = 1;
};

struct KernelReport {
  std::string kernel, backend;
  Isa isa = Isa::none;
  int64_t runs = 0, declines = 0;
  double worst = 0;  // largest error over its bound
  std::string worst_case;
  std::map<std::string, double> worst_by_dtype;  // dtypes of the operands -> largest error over bound
  std::vector<std::string> declined;             // distinct reasons
};
struct ConformanceReport {
  std::vector<KernelReport> kernels;
  std::vector<std::string> failures;  // the first 20
  int64_t comparisons = 0;
};

class ErasedOperator;

class Conformance {
 public:
  Conformance(const ErasedOperator& op, const ConformanceOptions& options) : op_(op), options_(options) {}
  ConformanceReport run();

 private:
  struct Set {
    std::vector<HostOperand> operands;
    std::shared_ptr<void> args;
  };
  struct Judging;

  template <class Visit>
  void for_each_choice(const Visit& visit);
  std::string describe(size_t index, const std::vector<DType>& dtypes, uint32_t absent, Layout layout) const;
  void fail(const std::string& what);
  bool make_inputs(size_t index, const std::vector<DType>& dtypes, uint32_t absent, Layout layout, Dims* dims,
                   Set* set);
  Set copy_of(const Set& from);
  Set reference_of(const Set& inputs, bool absolute);
  void run_case(size_t index, const std::vector<DType>& dtypes, uint32_t absent, Layout layout);
  std::optional<Set> packed_of(const Set& inputs, size_t kernel);
  void run_kernel(size_t kernel, KernelReport& report, const Set& inputs, const Judging& judging);
  Status run_on_device(size_t kernel, Set& set);
  void compare(size_t operand, const Set& got, const Judging& judging, KernelReport& report,
               const std::string& place);

  const ErasedOperator& op_;
  ConformanceOptions options_;
  std::vector<size_t> active_;  // kernels, one each in report_
  int64_t choices_ = 0;
  ConformanceReport report_;
};

}  // namespace ridge
