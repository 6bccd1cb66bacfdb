#pragma once
// An operator, described once: from the description follow the argument check, the account, dispatch,
// conformance, the benchmark and the support matrix (docs/architecture.md).

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "account/cost.h"
#include "base/decline.h"
#include "base/random.h"
#include "base/status.h"
#include "runtime/device.h"
#include "tensor/packed.h"
#include "tensor/tensor.h"

namespace ridge {

/// kInto: a buffer that the call writes a part of; it reads nothing of it, and the rest stays as it is.
enum class Role : uint8_t { kIn, kOut, kInOut, kInto };
using enum Role;
using enum DataClass;

/// A number of the real batch that shapes do not tell (tokens read, causal pairs …): a value, or a pointer to
/// one that the engine rewrites before every step, so that a replayed plan is accounted as exactly as a fresh
/// one.
struct Count {
  int64_t value = 0;
  const int64_t* live = nullptr;
  Count() = default;
  Count(int64_t v) : value(v) {}
  Count(const int64_t* l) : live(l) {}
  int64_t get() const { return live != nullptr ? *live : value; }
};

/// Values of the symbolic dims and of the counts, by name. An unknown name is a defect of a description:
/// aborts.
class Dims {
 public:
  int64_t operator[](std::string_view name) const;
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void set(std::string_view name, int64_t v) { values_.insert_or_assign(std::string(name), v); }
  const std::map<std::string, int64_t, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, int64_t, std::less<>> values_;
};

template <class A>
struct Operand {
  const char* name;
  Tensor A::*field;
  Role role;
  DataClass data_class;
  const char* dims;               // symbolic, outermost first: "tokens hidden"; digits are literal sizes
  std::vector<DType> dtypes;      // allowed; conformance tries each
  bool optional = false;          // may be absent (null data); conformance tries both
  const char* same_as = nullptr;  // takes the dtype of that operand instead of one of its own
};

/// A scalar argument, for the C API, the bench and messages.
template <class A>
struct Param {
  const char* name;
  std::variant<float A::*, int64_t A::*, bool A::*, uint64_t A::*> field;
};
template <class A>
struct CountParam {
  const char* name;
  Count A::*field;
};

enum CaseFlags : unsigned { kBench = 1, kSlow = 2 };

template <class A>
struct Case {
  std::vector<int64_t> dims;  // values of Operator::case_dims
  unsigned flags = 0;
  std::function<void(A&)> with = nullptr;  // scalar arguments, after prepare
  const char* name = "";                   // what it is about; a case of shared/cases by its id
};

/// Everything a tolerance may look at. `reference` holds the reference's outputs (float outputs in f32
/// whatever the kernel's type); `magnitude` those of the reference on |inputs|, when asked for.
template <class A>
struct Judged {
  const A& inputs;
  const A& reference;
  const A& magnitude;
  const Dims& dims;
};

/// Largest allowed |got - reference| of element [i, j, k, l] of an output, before half an output ulp is
/// added.
template <class A>
struct Tolerance {
  std::function<double(const Judged<A>&, Tensor A::*out, int64_t i, int64_t j, int64_t k, int64_t l)> bound;
  bool needs_magnitude = false;
};

/// Elements must be equal bit for bit in value.
template <class A>
Tolerance<A> exact() {
  return {[](const Judged<A>&, Tensor A::*, int64_t, int64_t, int64_t, int64_t) { return 0.0; }};
}
/// An f32 sum of `terms(dims)` products in any order: (terms + 2) 2^-24 sum |products| (Higham 2002, §4.2,
/// first order).
template <class A>
Tolerance<A> f32_sum(std::function<int64_t(const Dims&)> terms) {
  return {[terms](const Judged<A>& judged, Tensor A::*out, int64_t i, int64_t j, int64_t k, int64_t l) {
            return static_cast<double>(terms(judged.dims) + 2) * 0x1p-24 *
                   (judged.magnitude.*out).f64(i, j, k, l);
          },
          true};
}
/// `ulps` roundings of the result itself: ulps 2^-24 |reference|.
template <class A>
Tolerance<A> f32_roundings(double ulps) {
  return {[ulps](const Judged<A>& judged, Tensor A::*out, int64_t i, int64_t j, int64_t k, int64_t l) {
    return ulps * 0x1p-24 * std::fabs((judged.reference.*out).f64(i, j, k, l));
  }};
}

template <class A>
struct Kernel {
  std::string name;                           // "mean_pool_by_sequence"
  std::function<Decline(const A&)> declines;  // before any launch
  Status (*run)(Stream&, const A&) = nullptr;
  std::function<int64_t(const A&)> workspace = nullptr;       // bytes; null: none
  Engine engine = Engine::kF32;                               // which peak its arithmetic has
  std::function<int64_t(const A&)> executed_flops = nullptr;  // null: what Operator::flops says
  std::string backend;                                        // filled by the registration
  Isa isa = Isa::none;
};

/// The ordered list of one backend and instruction set, best first.
template <class A>
class Kernels {
 public:
  void add(Kernel<A> kernel) { list_.push_back(std::move(kernel)); }
  void add(std::string name, Decline (*declines)(const A&), Status (*run)(Stream&, const A&),
           Engine engine = Engine::kF32) {
    Kernel<A> kernel;
    kernel.name = std::move(name), kernel.declines = declines, kernel.run = run, kernel.engine = engine;
    list_.push_back(std::move(kernel));
  }
  std::vector<Kernel<A>>& list() { return list_; }

 private:
  std::vector<Kernel<A>> list_;
};

/// A packed layout of its own, made once at load.
template <class A>
struct Pack {
  Tensor A::*operand = nullptr;
  /// The layout that kernels of `target` want for such weights; null: keep the file's.
  const PackedLayout* (*choose)(const Target& target, DType dtype, const Shape& shape) = nullptr;
  /// Rows [first, last) of `rows` in the file's layout into `packed`, whose rows are whole tiles of the
  /// layout. Callable for disjoint ranges from several threads when first is a multiple of `granularity`.
  void (*run)(const Tensor& rows, const PackedLayout& layout, void* packed, int64_t first,
              int64_t last) = nullptr;
  int64_t granularity = 1;
};

/// One call of a step plan, erased.
struct AnyCall;

template <class A>
struct Operator {
  const char* name = "";
  std::vector<Operand<A>> operands;
  std::vector<CountParam<A>> counts;
  std::vector<Param<A>> params;
  std::function<int64_t(const Dims&)> flops;
  /// Elements of an operand that the call touches, where "each operand once" is wrong.
  std::map<std::string, std::function<int64_t(const Dims&)>> touched;
  void (*reference)(const A&) = nullptr;
  const char* case_dims = "";
  std::vector<Case<A>> cases;
  /// Fills index operands and scalar arguments of a case; float inputs and outputs hold random values and NaN
  /// already.
  std::function<void(A&, const Dims&, Random&)> prepare;
  /// False for a choice of dtypes and absent operands that no call can have (codes without their scales);
  /// conformance skips it. Null: every choice is one.
  std::function<bool(const A&)> choice_exists;
  Tolerance<A> tolerance;
  Pack<A> pack;
  /// Where the args hold what the account knows of the real batch beside counts: when it changes, cost and
  /// row are worked out anew. Null: there is nothing. An operator that has them counts its query-key pairs as
  /// "pairs", so that its operations by the full square follow from flops.
  std::shared_ptr<const std::vector<QueryChunk>> A::*chunks = nullptr;
  /// A key of this call's row in the account; null: the dims of the operands, joined.
  std::function<std::string(const A&)> shape_key;
  /// What follows it in the key, of calls whose lengths change from step to step: rows that differ in nothing
  /// else may be shown as their sum. Null: nothing.
  std::function<std::string(const A&)> lengths_key = nullptr;
  /// Calls whose operands lie in a core's own caches, on which `ridge probe` measures how fast the kernels
  /// are by themselves (machine/pace.h); none: unknown, and the account says so.
  std::vector<Case<A>> pace;
  /// The dims that set a kernel's pace beside the amount of work; null: none.
  std::function<std::vector<int64_t>(const A&)> pace_dims;
  /// Checks beyond shapes and dtypes (null: none): scalar ranges, a dim that must divide another.
  std::function<Status(const A&, const Dims&)> check;
  /// Fused operators: the operators replaced, and the arguments of the fused call made from theirs (nullopt:
  /// these calls do not feed each other so).
  std::vector<const char*> replaces;
  std::function<std::optional<A>(const std::vector<const AnyCall*>&)> fuse;
};

}  // namespace ridge
