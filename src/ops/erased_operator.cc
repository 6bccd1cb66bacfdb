#include "ops/erased_operator.h"

#include <algorithm>
#include <cstring>

#include "base/stop.h"
#include "ops/binding.h"
#include "ops/conformance.h"

namespace ridge {

const std::vector<const char*>& ErasedOperator::replaces() const {
  static const std::vector<const char*> nothing;
  return kernels_.empty() ? nothing : replaces_;
}

std::vector<std::string> ErasedOperator::params() const {
  std::vector<std::string> names;
  for (const ParamInfo& p : params_) names.push_back(p.name);
  for (const char* c : counts_) names.push_back(c);
  return names;
}

Status ErasedOperator::set_param(void* args, std::string_view name, double value) const {
  // Doubles hold integers exactly up to 2^53.
  constexpr double kMost = 0x1p53;
  for (size_t i = 0; i < params_.size(); ++i) {
    if (name != params_[i].name) continue;
    void* at = param_at(args, i);
    switch (params_[i].type) {
      case ParamType::kFloat:
        *static_cast<float*>(at) = static_cast<float>(value);
        break;
      case ParamType::kInt64:
        RIDGE_TRY(check_param(name_, name, value, -kMost, kMost));
        *static_cast<int64_t*>(at) = static_cast<int64_t>(value);
        break;
      case ParamType::kBool:
        RIDGE_TRY(check_param(name_, name, value, 0, 1));
        *static_cast<bool*>(at) = value != 0;
        break;
      case ParamType::kUint64:
        RIDGE_TRY(check_param(name_, name, value, 0, kMost));
        *static_cast<uint64_t*>(at) = static_cast<uint64_t>(value);
        break;
    }
    return {};
  }
  for (size_t i = 0; i < counts_.size(); ++i)
    if (name == counts_[i]) {
      RIDGE_TRY(check_param(name_, name, value, 0, kMost));
      count_at(args, i) = Count(static_cast<int64_t>(value));
      return {};
    }
  return invalid_argument(name_, " has no argument ", printable(name), "; it has ", params());
}

Result<double> ErasedOperator::get_param(const void* args, std::string_view name) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (name != params_[i].name) continue;
    const void* at = param_at(const_cast<void*>(args), i);
    switch (params_[i].type) {
      case ParamType::kFloat:
        return static_cast<double>(*static_cast<const float*>(at));
      case ParamType::kInt64:
        return static_cast<double>(*static_cast<const int64_t*>(at));
      case ParamType::kBool:
        return static_cast<double>(*static_cast<const bool*>(at));
      case ParamType::kUint64:
        return static_cast<double>(*static_cast<const uint64_t*>(at));
    }
  }
  if (const auto c = count(args, name)) return static_cast<double>(c->get());
  return invalid_argument(name_, " has no argument ", printable(name), "; it has ", params());
}

std::optional<Count> ErasedOperator::count(const void* args, std::string_view name) const {
  for (size_t i = 0; i < counts_.size(); ++i)
    if (name == counts_[i]) return count_at(args, i);
  return std::nullopt;
}

void ErasedOperator::batch_values(const void* args, std::vector<int64_t>* out) const {
  for (size_t i = 0; i < counts_.size(); ++i) out->push_back(count_at(args, i).get());
  if (const auto* chunks = chunks_of(args))
    for (const QueryChunk& c : *chunks) out->insert(out->end(), {c.past, c.tokens});
}

void ErasedOperator::batch_sources(const void* args,
                                   std::vector<std::pair<const void*, int64_t>>* out) const {
  for (size_t i = 0; i < counts_.size(); ++i) {
    const Count& count = count_at(args, i);
    out->emplace_back(count.live, count.live != nullptr ? 0 : count.value);
  }
  if (const auto* chunks = chunks_of(args)) out->emplace_back(chunks, 0);
}

std::shared_ptr<const void> ErasedOperator::args_of_now(const void* args) const {
  const std::shared_ptr<void> copy = clone_args(args);
  for (size_t i = 0; i < counts_.size(); ++i) {
    Count& count = count_at(copy.get(), i);
    count = Count(count.get());
  }
  if (auto* chunks = chunks_at(copy.get()); chunks != nullptr && *chunks != nullptr)
    *chunks = std::make_shared<const std::vector<QueryChunk>>(**chunks);
  return copy;
}

Status ErasedOperator::bind(const void* args, Dims* dims) const {
  for (size_t i = 0; i < operands_.size(); ++i) {
    const OperandInfo& o = operands_[i];
    const Tensor& t = operand_at(args, i);
    if (!t) {
      // A tensor without elements may have no memory.
      if (o.optional) continue;
      if (t.rank() == 0 || t.elements() != 0)
        return invalid_argument(name_, ": operand ", o.name, " is missing");
    }
    bool known = false;
    if (o.same_as == nullptr) {
      for (const DType d : o.dtypes) known |= d == t.dtype;
      if (!known) return bad_dtype(name_, o.name, t.dtype, o.dtypes);
    }
    for (size_t k = 0; o.same_as != nullptr && k < operands_.size(); ++k)
      if (std::string_view(operands_[k].name) == o.same_as && operand_at(args, k).dtype != t.dtype)
        return bad_dtype(name_, o.name, t.dtype, {operand_at(args, k).dtype});
    RIDGE_TRY(bind_operand(name_, o.name, t, o.dims, dims));
  }
  add_counts(args, dims);
  return {};
}

void ErasedOperator::add_counts(const void* args, Dims* dims) const {
  for (size_t i = 0; i < counts_.size(); ++i) dims->set(counts_[i], count_at(args, i).get());
}

Status ErasedOperator::check(const void* args) const {
  Dims dims;
  RIDGE_TRY(bind(args, &dims));
  return check_further(args, dims).within(name_);
}

Result<Selection> ErasedOperator::select(const Target& target, const void* args) const {
  Selection selection;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const KernelInfo& k = kernels_[i];
    if (k.backend != target.backend || k.isa > target.isa) continue;
    if (const Decline no = kernel_declines(i, args)) {
      selection.declines.push_back(text(k.name, ": ", no.reason));
      continue;
    }
    selection.kernel = static_cast<int>(i);
    selection.workspace_bytes = kernel_workspace(i, args);
    return selection;
  }
  bool packed = false;
  for (size_t i = 0; i < operands_.size(); ++i) packed |= operand_at(args, i).layout != nullptr;
  if (target.backend == "cpu" && has_reference() && !packed) return selection;
  std::string reasons;
  for (const auto& d : selection.declines) reasons += "; " + d;
  return declined(name_, " has no ", target.backend, " kernel for this call", reasons);
}

Status ErasedOperator::run(const Selection& s, Stream& stream, const void* args) const {
  if (s.kernel >= 0) return run_kernel(static_cast<size_t>(s.kernel), stream, args);
  reference(args);
  return {};
}

const char* ErasedOperator::kernel_name(const Selection& s) const {
  return s.kernel < 0 ? "reference" : kernels_[static_cast<size_t>(s.kernel)].name.c_str();
}

Cost ErasedOperator::cost(const Selection& selection, const void* args) const {
  Dims dims;
  Cost cost;
  if (!bind(args, &dims).ok()) return cost;
  cost.launches = 1;
  // A call with nothing to write returns before it reads.
  bool writes = false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Tensor& t = operand_at(args, i);
    writes |= operands_[i].role != kIn && t && t.elements() > 0;
  }
  if (!writes) return cost;
  const bool chosen = selection.kernel >= 0;
  const auto kernel = static_cast<size_t>(selection.kernel);
  const auto engine = static_cast<size_t>(chosen ? kernels_[kernel].engine : Engine::kF32);
  cost.flops[engine] = flops(dims);
  cost.executed_flops[engine] =
      (chosen ? executed_flops(kernel, args) : std::nullopt).value_or(cost.flops[engine]);
  for (size_t i = 0; i < operands_.size(); ++i) {
    const OperandInfo& o = operands_[i];
    const Tensor& t = operand_at(args, i);
    if (!t) continue;
    const SplitBytes bytes = split_bytes(t, touched(i, dims).value_or(t.elements()));
    const auto pool = static_cast<size_t>(o.data_class), scales = static_cast<size_t>(DataClass::kScales);
    if (o.role == kIn || o.role == kInOut)
      cost.read_bytes[pool] += bytes.codes, cost.read_bytes[scales] += bytes.scales;
    if (o.role != kIn) cost.written_bytes[pool] += bytes.codes, cost.written_bytes[scales] += bytes.scales;
  }
  if (const auto* chunks = chunks_of(args)) {
    // A decode, without query_start, has one query a sequence: a row of keys, and no square that grows.
    int64_t pairs = 0;
    for (const QueryChunk& c : *chunks)
      pairs += of_prompts_ ? square_pairs(c.past, c.tokens) : c.tokens * (c.past + c.tokens);
    dims.set("pairs", pairs);
    cost.square_flops = flops(dims);
  }
  return cost;
}

std::string ErasedOperator::shape(const void* args) const {
  return fixed_shape(args) + lengths(args);
}

std::string ErasedOperator::default_shape(const void* args) const {
  Dims dims;
  if (!bind(args, &dims).ok()) return "?";
  std::string key;
  std::vector<std::string> seen;
  for (const OperandInfo& o : operands_)
    for (const auto& word : dim_words(o.dims)) {
      const bool literal = word[0] >= '0' && word[0] <= '9';
      if (literal || std::find(seen.begin(), seen.end(), word) != seen.end() || !dims.has(word)) continue;
      seen.push_back(word);
      key += text(key.empty() ? "" : "x", dims[word]);
    }
  return key;
}

/// Operands with random values for the given case dims (dense; weights packed for `target`); scalar arguments
/// as the bench case of those dims has them.
Result<std::shared_ptr<void>> ErasedOperator::example_args(const Target& target,
                                                           const std::vector<int64_t>& case_dims,
                                                           const std::map<std::string, DType>& dtypes,
                                                           uint64_t seed,
                                                           std::vector<Buffer>* storage) const {
  const auto names = dim_words(case_dims_);
  if (names.size() != case_dims.size())
    return invalid_argument(name_, ": shape has ", case_dims.size(), " numbers, needs ", names.size(), ": ",
                            case_dims_);
  Dims dims;
  for (size_t i = 0; i < names.size(); ++i) dims.set(names[i], case_dims[i]);
  Random random(seed);
  std::shared_ptr<void> args = new_args();
  for (size_t i = 0; i < operands_.size(); ++i) {
    const OperandInfo& o = operands_[i];
    const auto chosen = dtypes.find(o.name);
    if (o.optional && chosen == dtypes.end()) continue;
    DType dtype = chosen != dtypes.end() ? chosen->second : o.same_as ? kF32 : o.dtypes.front();
    for (size_t k = 0; o.same_as != nullptr && k < operands_.size(); ++k)
      if (std::string_view(operands_[k].name) == o.same_as) dtype = operand_at(args.get(), k).dtype;
    const Shape shape = shape_of(o.dims, dims);
    RIDGE_ASSIGN(HostOperand memory, HostOperand::make(dtype, shape, Layout::kDense));
    memory.fill(random);
    RIDGE_TRY(check_stop());  // a large weight takes seconds to fill, and again to pack
    const PackedLayout* packed =
        packed_operand() == static_cast<int>(i) ? packed_layout(target, dtype, shape) : nullptr;
    RIDGE_ASSIGN(const int64_t raw_bytes, tensor_bytes(dtype, shape));
    RIDGE_ASSIGN(Buffer buffer,
                 Buffer::allocate(packed ? packed->bytes(shape[0], shape[1]) : raw_bytes, Pages::kHuge));
    if (packed)
      pack_rows(memory.tensor(), *packed, buffer.data(), 0, shape[0]);
    else
      std::memcpy(buffer.data(), memory.tensor().data, static_cast<size_t>(raw_bytes));
    Tensor t(buffer.data(), dtype, shape);
    t.layout = packed;
    operand(args.get(), static_cast<int>(i)) = t;
    storage->push_back(std::move(buffer));
  }
  prepare(args.get(), dims, random);
  for (size_t i = 0; i < cases_.size(); ++i)
    if ((cases_[i].flags & kBench) != 0 && cases_[i].dims == case_dims) set_case(i, args.get());
  return args;
}

Result<AnyCall> ErasedOperator::example(const Target& target, const std::vector<int64_t>& case_dims,
                                        const std::map<std::string, DType>& dtypes, uint64_t seed,
                                        std::vector<Buffer>* storage) const {
  RIDGE_ASSIGN(std::shared_ptr<void> args, example_args(target, case_dims, dtypes, seed, storage));
  return AnyCall{const_cast<ErasedOperator*>(this), std::move(args), name_};
}

Result<AnyCall> ErasedOperator::pace_example(const Target& target, size_t index,
                                             const std::map<std::string, DType>& dtypes, uint64_t seed,
                                             std::vector<Buffer>* storage) const {
  RIDGE_ASSIGN(std::shared_ptr<void> args, example_args(target, pace_[index].dims, dtypes, seed, storage));
  set_pace_case(index, args.get());
  return AnyCall{const_cast<ErasedOperator*>(this), std::move(args), name_};
}

std::vector<std::vector<int64_t>> ErasedOperator::bench_cases() const {
  std::vector<std::vector<int64_t>> out;
  for (const CaseInfo& c : cases_)
    if (c.flags & kBench) out.push_back(c.dims);
  return out;
}

ConformanceReport ErasedOperator::conform(const ConformanceOptions& options) const {
  return Conformance(*this, options).run();
}

Result<Judgement> ErasedOperator::judge(const void* before, const void* after) const {
  return judge_call(*this, before, after);
}

}  // namespace ridge
