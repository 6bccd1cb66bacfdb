#pragma once
// Registered<A>: an operator's description made into an AnyOperator. Included by the generated registration
// alone, and by tests that add a backend; everything else needs any_operator.h and dispatch.h.

#include <algorithm>

#include "ops/any_operator.h"
#include "ops/binding.h"
#include "ops/conformance.h"
#include "ops/dispatch.h"
#include "ops/judge.h"

namespace ridge {

// What an integer argument may be when it comes as a double: doubles hold integers exactly up to 2^53.
template <class T>
inline constexpr double param_least = std::is_signed_v<T> ? -0x1p53 : 0;
template <class T>
inline constexpr double param_most = std::is_same_v<T, bool> ? 1 : 0x1p53;

template <class A>
class Registered final : public AnyOperator, public CallJudge {
 public:
  explicit Registered(Operator<A> description) : op_(std::move(description)) {
    for (const auto& o : op_.operands)
      infos_.push_back({o.name, o.role, o.data_class, o.dims, o.dtypes, o.optional, o.same_as});
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
      kernels_.push_back(std::move(k));
    }
  }
  const Operator<A>& description() const { return op_; }
  const std::vector<Kernel<A>>& kernel_list() const { return kernels_; }

  const char* name() const override { return op_.name; }
  const std::vector<OperandInfo>& operands() const override { return infos_; }
  /// Nothing where this build has no kernel for it: then the sequence is what runs.
  const std::vector<const char*>& replaces() const override {
    static const std::vector<const char*> nothing;
    return kernels_.empty() ? nothing : op_.replaces;
  }
  std::vector<std::string> params() const override {
    std::vector<std::string> names;
    for (const auto& p : op_.params) names.push_back(p.name);
    for (const auto& c : op_.counts) names.push_back(c.name);
    return names;
  }
  std::vector<KernelInfo> kernels() const override {
    std::vector<KernelInfo> out;
    for (const auto& k : kernels_) out.push_back({k.name, k.backend, k.isa, k.engine});
    return out;
  }

  std::shared_ptr<void> new_args() const override { return std::make_shared<A>(); }
  std::shared_ptr<void> clone_args(const void* args) const override { return std::make_shared<A>(as(args)); }
  Tensor& operand(void* args, int index) const override {
    return static_cast<A*>(args)->*op_.operands[static_cast<size_t>(index)].field;
  }
  Status set_param(void* args, std::string_view name, double value) const override;
  Result<double> get_param(const void* args, std::string_view name) const override {
    for (const auto& p : op_.params)
      if (name == p.name)
        return std::visit([&](auto field) { return static_cast<double>(as(args).*field); }, p.field);
    for (const auto& c : op_.counts)
      if (name == c.name) return static_cast<double>((as(args).*c.field).get());
    return invalid_argument(op_.name, " has no argument ", printable(name), "; it has ", params());
  }
  std::optional<Count> count(const void* args, std::string_view name) const override {
    for (const auto& c : op_.counts)
      if (name == c.name) return as(args).*c.field;
    return std::nullopt;
  }
  void batch_values(const void* args, std::vector<int64_t>* out) const override {
    for (const auto& c : op_.counts) out->push_back((as(args).*c.field).get());
    if (const auto* chunks = chunks_of(as(args)))
      for (const QueryChunk& c : *chunks) out->insert(out->end(), {c.past, c.tokens});
  }
  std::shared_ptr<const void> args_of_now(const void* args) const override {
    auto copy = std::make_shared<A>(as(args));
    for (const auto& c : op_.counts) (*copy).*c.field = Count(((*copy).*c.field).get());
    if (const auto* chunks = chunks_of(*copy))
      (*copy).*op_.chunks = std::make_shared<const std::vector<QueryChunk>>(*chunks);
    return copy;
  }
  void batch_sources(const void* args, std::vector<std::pair<const void*, int64_t>>* out) const override {
    for (const auto& c : op_.counts) {
      const Count& count = as(args).*c.field;
      out->emplace_back(count.live, count.live != nullptr ? 0 : count.value);
    }
    if (const auto* chunks = chunks_of(as(args))) out->emplace_back(chunks, 0);
  }
  Status check(const void* args) const override {
    Dims dims;
    RIDGE_TRY(bind(op_, as(args), &dims));
    return op_.check ? op_.check(as(args), dims).within(op_.name) : Status();
  }

  Result<Selection> select(const Target& target, const void* args) const override {
    Selection selection;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const Kernel<A>& k = kernels_[i];
      if (k.backend != target.backend || k.isa > target.isa) continue;
      if (const Decline no = k.declines ? k.declines(as(args)) : Decline{}) {
        selection.declines.push_back(text(k.name, ": ", no.reason));
        continue;
      }
      selection.kernel = static_cast<int>(i);
      selection.workspace_bytes = k.workspace ? k.workspace(as(args)) : 0;
      return selection;
    }
    if (target.backend == "cpu" && op_.reference != nullptr && !has_packed_operand(as(args)))
      return selection;
    std::string reasons;
    for (const auto& d : selection.declines) reasons += "; " + d;
    return declined(op_.name, " has no ", target.backend, " kernel for this call", reasons);
  }
  Status run(const Selection& s, Stream& stream, const void* args) const override {
    if (s.kernel < 0) {
      op_.reference(as(args));
      return {};
    }
    return kernels_[static_cast<size_t>(s.kernel)].run(stream, as(args));
  }
  const char* kernel_name(const Selection& s) const override {
    return s.kernel < 0 ? "reference" : kernels_[static_cast<size_t>(s.kernel)].name.c_str();
  }
  Cost cost(const Selection& selection, const void* args) const override;
  std::string shape(const void* args) const override {
    return fixed_shape(args) + (op_.lengths_key ? ", " + op_.lengths_key(as(args)) : "");
  }
  std::string fixed_shape(const void* args) const override {
    return op_.shape_key ? op_.shape_key(as(args)) : default_shape_key(op_, as(args));
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

  ConformanceReport conform(const ConformanceOptions& options) const override {
    return Conformance<A>(op_, kernels_, options).run();
  }
  Result<Judgement> judge(const void* before, const void* after) const override {
    return JudgedCall<A>(op_, as(before), as(after)).judge();
  }
  Result<AnyCall> example(const Target& target, const std::vector<int64_t>& case_dims,
                          const std::map<std::string, DType>& dtypes, uint64_t seed,
                          std::vector<Buffer>* storage) const override {
    RIDGE_ASSIGN(A args, make_example(op_, target, case_dims, dtypes, seed, storage));
    return AnyCall{const_cast<Registered*>(this), std::make_shared<A>(args), op_.name};
  }
  size_t pace_cases() const override { return op_.pace.size(); }
  Result<AnyCall> pace_example(const Target& target, size_t index, const std::map<std::string, DType>& dtypes,
                               uint64_t seed, std::vector<Buffer>* storage) const override {
    const Case<A>& c = op_.pace[index];
    RIDGE_ASSIGN(A args, make_example(op_, target, c.dims, dtypes, seed, storage));
    if (c.with) c.with(args);
    return AnyCall{const_cast<Registered*>(this), std::make_shared<A>(args), op_.name};
  }
  std::vector<int64_t> pace_dims(const void* args) const override {
    return op_.pace_dims ? op_.pace_dims(as(args)) : std::vector<int64_t>();
  }
  const char* case_dims() const override { return op_.case_dims; }
  std::vector<std::vector<int64_t>> bench_cases() const override {
    std::vector<std::vector<int64_t>> out;
    for (const auto& c : op_.cases)
      if (c.flags & kBench) out.push_back(c.dims);
    return out;
  }

 private:
  static const A& as(const void* args) { return *static_cast<const A*>(args); }
  const std::vector<QueryChunk>* chunks_of(const A& args) const {
    return op_.chunks != nullptr ? (args.*op_.chunks).get() : nullptr;
  }
  bool has_packed_operand(const A& args) const {
    return std::any_of(op_.operands.begin(), op_.operands.end(),
                       [&](const Operand<A>& o) { return (args.*o.field).layout != nullptr; });
  }

  Operator<A> op_;
  std::vector<OperandInfo> infos_;
  std::vector<Kernel<A>> kernels_;
};

template <class A>
Status Registered<A>::set_param(void* args, std::string_view name, double value) const {
  A& a = *static_cast<A*>(args);
  for (const auto& p : op_.params)
    if (name == p.name) {
      return std::visit(
          [&](auto field) {
            using Value = std::remove_reference_t<decltype(a.*field)>;
            if constexpr (!std::is_same_v<Value, float>)
              RIDGE_TRY(check_param(op_.name, name, value, param_least<Value>, param_most<Value>));
            a.*field = static_cast<Value>(value);
            return Status();
          },
          p.field);
    }
  for (const auto& c : op_.counts)
    if (name == c.name) {
      RIDGE_TRY(check_param(op_.name, name, value, 0, param_most<int64_t>));
      a.*c.field = Count(static_cast<int64_t>(value));
      return {};
    }
  return invalid_argument(op_.name, " has no argument ", printable(name), "; it has ", params());
}

template <class A>
Cost Registered<A>::cost(const Selection& selection, const void* args) const {
  const A& a = as(args);
  Dims dims;
  Cost cost;
  if (!bind(op_, a, &dims).ok()) return cost;
  cost.launches = 1;
  // A call with nothing to write returns before it reads.
  if (std::none_of(op_.operands.begin(), op_.operands.end(),
                   [&](const auto& o) { return o.role != kIn && a.*o.field && (a.*o.field).elements() > 0; }))
    return cost;
  const Kernel<A>* kernel = selection.kernel < 0 ? nullptr : &kernels_[static_cast<size_t>(selection.kernel)];
  const auto engine = static_cast<size_t>(kernel ? kernel->engine : Engine::kF32);
  cost.flops[engine] = op_.flops ? op_.flops(dims) : 0;
  cost.executed_flops[engine] =
      kernel && kernel->executed_flops ? kernel->executed_flops(a) : cost.flops[engine];
  for (const auto& o : op_.operands) {
    const Tensor& t = a.*o.field;
    if (!t) continue;
    const auto touched = op_.touched.find(o.name);
    const int64_t elements = touched != op_.touched.end() ? touched->second(dims) : t.elements();
    const SplitBytes bytes = split_bytes(t, elements);
    const auto pool = static_cast<size_t>(o.data_class), scales = static_cast<size_t>(DataClass::kScales);
    if (o.role == kIn || o.role == kInOut)
      cost.read_bytes[pool] += bytes.codes, cost.read_bytes[scales] += bytes.scales;
    if (o.role != kIn) cost.written_bytes[pool] += bytes.codes, cost.written_bytes[scales] += bytes.scales;
  }
  if (const auto* chunks = chunks_of(a)) {
    // A decode, without query_start, has one query a sequence: a row of keys, and no square that grows.
    constexpr bool kPrompts = requires(A call) {
      call.query_start;
    };
    int64_t pairs = 0;
    for (const QueryChunk& c : *chunks)
      pairs += kPrompts ? square_pairs(c.past, c.tokens) : c.tokens * (c.past + c.tokens);
    dims.set("pairs", pairs);
    cost.square_flops = op_.flops(dims);
  }
  return cost;
}

}  // namespace ridge
