#pragma once
// The erased form of an operator, for registry, plan, account, bench, conformance and the C API.

#include <memory>
#include <string>
#include <vector>

#include "ops/operator.h"

namespace ridge {

class AnyOperator;

struct AnyCall {
  AnyOperator* op = nullptr;
  std::shared_ptr<void> args;  // of the operator's Args type
  std::string label;           // "layer 3 gate_up"

  template <class A>
  const A& as() const {
    return *static_cast<const A*>(args.get());
  }
};

struct OperandInfo {
  const char* name;
  Role role;
  DataClass data_class;
  const char* dims;
  std::vector<DType> dtypes;
  bool optional;
  const char* same_as;
};

struct KernelInfo {
  std::string name, backend;
  Isa isa;
  Engine engine;
};

/// The kernel that dispatch resolved, and why the better ones did not take the call.
struct Selection {
  int kernel = -1;  // index into AnyOperator::kernels(); -1: the reference
  int64_t workspace_bytes = 0;
  std::vector<std::string> declines;  // "linear_tiles_avx512: k is 7, needs a multiple of 32"
};

struct ConformanceOptions;
struct ConformanceReport;

class AnyOperator {
 public:
  virtual ~AnyOperator() = default;
  virtual const char* name() const = 0;
  virtual const std::vector<OperandInfo>& operands() const = 0;
  virtual std::vector<std::string> params() const = 0;
  virtual std::vector<KernelInfo> kernels() const = 0;
  virtual const std::vector<const char*>& replaces() const = 0;

  virtual std::shared_ptr<void> new_args() const = 0;
  virtual std::shared_ptr<void> clone_args(const void* args) const = 0;
  virtual Tensor& operand(void* args, int index) const = 0;
  /// Sets a scalar argument or count by name; kInvalidArgument names what there is.
  virtual Status set_param(void* args, std::string_view name, double value) const = 0;
  virtual Result<double> get_param(const void* args, std::string_view name) const = 0;
  /// A count as it is, live or not; nullopt: there is none of that name.
  virtual std::optional<Count> count(const void* args, std::string_view name) const = 0;
  /// Appends all that changes between two runs of a planned call: its counts as they are, and its chunks.
  virtual void batch_values(const void* args, std::vector<int64_t>* out) const = 0;
  /// A copy whose batch_values() stay what they are now, whatever the plan's next step sets.
  virtual std::shared_ptr<const void> args_of_now(const void* args) const = 0;
  /// Appends where those come from, an address and a number each: two calls of one operator with the same
  /// sources have the same batch_values() at all times.
  virtual void batch_sources(const void* args, std::vector<std::pair<const void*, int64_t>>* out) const = 0;

  /// Shapes, dtypes and scalars: kInvalidArgument naming operand, value found, value wanted.
  virtual Status check(const void* args) const = 0;
  /// The best kernel of `target` that takes the call; the reference on a CPU when none does, else kDeclined.
  virtual Result<Selection> select(const Target& target, const void* args) const = 0;
  /// Runs a selected kernel; arguments were checked.
  virtual Status run(const Selection& selection, Stream& stream, const void* args) const = 0;
  virtual const char* kernel_name(const Selection& selection) const = 0;
  /// The same as long as scalars and batch_values() are.
  virtual Cost cost(const Selection& selection, const void* args) const = 0;
  virtual std::string shape(const void* args) const = 0;
  /// What of shape() stays from step to step: all but the lengths of the batch.
  virtual std::string fixed_shape(const void* args) const = 0;

  /// Null when the operator packs nothing on that target, or keeps the file's layout.
  virtual const PackedLayout* packed_layout(const Target& target, DType dtype, const Shape& shape) const = 0;
  virtual void pack_rows(const Tensor& rows, const PackedLayout& layout, void* packed, int64_t first,
                         int64_t last) const = 0;
  virtual int64_t pack_granularity() const = 0;

  /// For a fused operator: the call that replaces `sequence`, or one without args when they do not feed each
  /// other so.
  virtual AnyCall fuse(const std::vector<const AnyCall*>& sequence) const = 0;

  /// Runs every case on every kernel of the device against the reference.
  virtual ConformanceReport conform(const ConformanceOptions& options) const = 0;
  /// A call with random operands for the given values of case_dims, for the bench. `storage` receives what it
  /// points to.
  virtual Result<AnyCall> example(const Target& target, const std::vector<int64_t>& case_dims,
                                  const std::map<std::string, DType>& dtypes, uint64_t seed,
                                  std::vector<Buffer>* storage) const = 0;
  /// The description's pace cases, made as example() makes a call, and the dims that set the pace of a call.
  virtual size_t pace_cases() const = 0;
  virtual Result<AnyCall> pace_example(const Target& target, size_t index,
                                       const std::map<std::string, DType>& dtypes, uint64_t seed,
                                       std::vector<Buffer>* storage) const = 0;
  virtual std::vector<int64_t> pace_dims(const void* args) const = 0;
  virtual const char* case_dims() const = 0;
  virtual std::vector<std::vector<int64_t>> bench_cases() const = 0;
};

/// For fuse functions, which see calls of other operators erased: an operand (empty when absent), a scalar or
/// a count by name. An unknown name is a defect of a description: aborts.
Tensor operand_of(const AnyCall& call, std::string_view name);
double param_of(const AnyCall& call, std::string_view name);
Count count_of(const AnyCall& call, std::string_view name);

/// All operators, in the order of their folder names.
const std::vector<AnyOperator*>& operators();
AnyOperator* find_operator(std::string_view name);
/// The fused operators that have a kernel on `backend`.
std::vector<AnyOperator*> fused_operators(const std::string& backend);

}  // namespace ridge
