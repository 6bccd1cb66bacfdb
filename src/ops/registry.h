#pragma once
// Registered<A>: an operator's description made into an AnyOperator. Included by the generated registration
// alone, and by tests that add a backend; everything else needs any_operator.h and dispatch.h. Instantiated
// for every operator: what can be said without the type of its arguments belongs to ErasedOperator.

#include "ops/dispatch.h"
#include "ops/erased_operator.h"

namespace ridge {

template <class A>
class Registered final : public ErasedOperator {
 public:
  explicit Registered(Operator<A> description) : op_(std::move(description)) {
    name_ = op_.name, case_dims_ = op_.case_dims, replaces_ = op_.replaces;
    for (const auto& o : op_.operands)
      operands_.push_back({o.name, o.role, o.data_class, o.dims, o.dtypes, o.optional, o.same_as});
    for (const auto& p : op_.params) params_.push_back({p.name, static_cast<ParamType>(p.field.index())});
    for (const auto& c : op_.counts) counts_.push_back(c.name);
    for (const auto& c : op_.cases) cases_.push_back({c.dims, c.flags, c.name});
    for (const auto& c : op_.pace) pace_.push_back({c.dims, c.flags, c.name});
    of_prompts_ = requires(A call) {
      call.query_start;
    };
  }

  /// Registration: the kernels of one backend and instruction set, best first; wider sets are added before
  /// narrower ones. Of a set that this processor lacks nothing is called, `list` neither: it was compiled for
  /// the set, as its kernels were.
  void add(const char* backend, Isa isa, void (*list)(Kernels<A>&)) {
    if (isa != Isa::none && !check_isa(isa).ok()) return;
    Kernels<A> kernels;
    list(kernels);
    for (auto& k : kernels.list()) {
      k.backend = backend, k.isa = isa;
      kernels_.push_back({k.name, k.backend, k.isa, k.engine});
      list_.push_back(std::move(k));
    }
  }
  const std::vector<Kernel<A>>& kernel_list() const { return list_; }

  std::shared_ptr<void> new_args() const override { return std::make_shared<A>(); }
  std::shared_ptr<void> clone_args(const void* args) const override { return std::make_shared<A>(as(args)); }
  Tensor& operand(void* args, int index) const override {
    return as(args).*op_.operands[static_cast<size_t>(index)].field;
  }
  std::string fixed_shape(const void* args) const override {
    return op_.shape_key ? op_.shape_key(as(args)) : default_shape(args);
  }
  const PackedLayout* packed_layout(const Target& target, DType dtype, const Shape& shape) const override {
    return op_.pack.choose != nullptr ? op_.pack.choose(target, dtype, shape) : nullptr;
  }
  void pack_rows(const Tensor& rows, const PackedLayout& layout, void* packed, int64_t first,
                 int64_t last) const override {
    op_.pack.run(rows, layout, packed, first, last);
  }
  int64_t pack_granularity() const override { return op_.pack.granularity; }
  AnyCall fuse(const std::vector<const AnyCall*>& sequence) const override {
    std::optional<A> fused = op_.fuse ? op_.fuse(sequence) : std::nullopt;
    if (!fused) return {};
    return {const_cast<Registered*>(this), std::make_shared<A>(std::move(*fused)), sequence.front()->label};
  }
  std::vector<int64_t> pace_dims(const void* args) const override {
    return op_.pace_dims ? op_.pace_dims(as(args)) : std::vector<int64_t>();
  }

  Status check_further(const void* args, const Dims& dims) const override {
    return op_.check ? op_.check(as(args), dims) : Status();
  }
  void prepare(void* args, const Dims& dims, Random& random) const override {
    if (op_.prepare) op_.prepare(as(args), dims, random);
  }
  bool choice_exists(const void* args) const override {
    return !op_.choice_exists || op_.choice_exists(as(args));
  }
  bool has_reference() const override { return op_.reference != nullptr; }
  void reference(const void* args) const override { op_.reference(as(args)); }
  void set_case(size_t index, void* args) const override {
    if (op_.cases[index].with) op_.cases[index].with(as(args));
  }
  void set_pace_case(size_t index, void* args) const override {
    if (op_.pace[index].with) op_.pace[index].with(as(args));
  }
  bool needs_magnitude() const override { return op_.tolerance.needs_magnitude; }
  double bound(const JudgedArgs& j, size_t operand, int64_t at0, int64_t at1, int64_t at2,
               int64_t at3) const override {
    const Judged<A> judged{as(j.inputs), as(j.reference), as(j.magnitude), j.dims};
    return op_.tolerance.bound(judged, op_.operands[operand].field, at0, at1, at2, at3);
  }
  int packed_operand() const override {
    for (size_t i = 0; i < op_.operands.size(); ++i)
      if (op_.pack.choose != nullptr && op_.operands[i].field == op_.pack.operand) return static_cast<int>(i);
    return -1;
  }
  Decline kernel_declines(size_t kernel, const void* args) const override {
    return list_[kernel].declines ? list_[kernel].declines(as(args)) : Decline{};
  }
  int64_t kernel_workspace(size_t kernel, const void* args) const override {
    return list_[kernel].workspace ? list_[kernel].workspace(as(args)) : 0;
  }
  Status run_kernel(size_t kernel, Stream& stream, const void* args) const override {
    return list_[kernel].run(stream, as(args));
  }

 protected:
  Count& count_at(void* args, size_t index) const override { return as(args).*op_.counts[index].field; }
  void* param_at(void* args, size_t index) const override {
    return std::visit([&](auto field) -> void* { return &(as(args).*field); }, op_.params[index].field);
  }
  std::shared_ptr<const std::vector<QueryChunk>>* chunks_at(void* args) const override {
    return op_.chunks != nullptr ? &(as(args).*op_.chunks) : nullptr;
  }
  int64_t flops(const Dims& dims) const override { return op_.flops ? op_.flops(dims) : 0; }
  std::optional<int64_t> executed_flops(size_t kernel, const void* args) const override {
    const auto& count = list_[kernel].executed_flops;
    return count ? std::optional<int64_t>(count(as(args))) : std::nullopt;
  }
  std::optional<int64_t> touched(size_t operand, const Dims& dims) const override {
    const auto found = op_.touched.find(op_.operands[operand].name);
    return found != op_.touched.end() ? std::optional<int64_t>(found->second(dims)) : std::nullopt;
  }
  std::string lengths(const void* args) const override {
    return op_.lengths_key ? ", " + op_.lengths_key(as(args)) : "";
  }

 private:
  static const A& as(const void* args) { return *static_cast<const A*>(args); }
  static A& as(void* args) { return *static_cast<A*>(args); }

  Operator<A> op_;
  std::vector<Kernel<A>> list_;
};

}  // namespace ridge
