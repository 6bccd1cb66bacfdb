#pragma once
// Conformance: every case of a description on every kernel that takes it, against the double-precision
// reference. Outputs and unowned memory start as NaN, gaps between rows are poisoned, guard bytes lie round
// each operand.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/stop.h"
#include "ops/binding.h"
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

enum class Layout {
  kDense,
  kGapped
};  // kGapped: rows apart by a few poisoned elements and off alignment by one

/// Host memory of one operand. Copying a value copies its bytes to new memory.
class HostOperand {
 public:
  HostOperand() = default;
  /// Everything, gaps and guards included, starts poisoned: NaN, or 2147480000 for indices.
  static Result<HostOperand> make(DType dtype, const Shape& shape, Layout layout);
  static Result<HostOperand> make_packed(const PackedLayout& layout, DType dtype, const Shape& shape);
  Result<HostOperand> copy() const;
  const Tensor& tensor() const { return tensor_; }
  void* base() const { return memory_.data(); }
  int64_t bytes() const { return memory_.bytes(); }
  int64_t offset() const { return offset_; }
  /// Random values: normal floats, encoded blocks, any integer byte. Index types are left poisoned.
  void fill(Random& random);
  void make_absolute();
  /// "" or what was written outside the elements.
  std::string damage(const HostOperand& before) const;

 private:
  Buffer memory_;
  int64_t offset_ = 0;
  Tensor tensor_;
};

/// |got - want| against bound plus half an ulp of got's dtype for each of `roundings`; bound ratio in *ratio.
/// False when it fails.
bool within(double got, double want, double bound, DType dtype, double* ratio, int roundings = 1);

/// Copies of host operands on a device, and the way back.
class DeviceOperand {
 public:
  static Result<DeviceOperand> upload(Device& device, const HostOperand& host);
  Status download(Device& device, HostOperand* host) const;
  Tensor tensor() const { return tensor_; }

 private:
  Buffer memory_;
  Tensor tensor_;
};

template <class A>
class Conformance {
 public:
  Conformance(const Operator<A>& op, const std::vector<Kernel<A>>& kernels, const ConformanceOptions& options)
      : op_(op), kernels_(kernels), options_(options) {}

  ConformanceReport run() {
    const Target& target = options_.device->target();
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const Kernel<A>& k = kernels_[i];
      if (k.backend != target.backend || k.isa > target.isa) continue;
      if (options_.only != Isa::none && k.isa != options_.only) continue;
      active_.push_back(i);
      report_.kernels.push_back({k.name, k.backend, k.isa, 0, 0, 0, "", {}, {}});
    }
    for (const auto& c : op_.cases) {
      if ((c.flags & (kBench | kSlow)) && !options_.slow) continue;
      for_each_choice([&](const std::vector<DType>& dtypes, uint32_t absent) {
        for (const Layout layout : {Layout::kDense, Layout::kGapped})
          if (choices_++ % options_.every == 0) run_case(c, dtypes, absent, layout);
      });
    }
    return std::move(report_);
  }

 private:
  struct Set {
    std::vector<HostOperand> operands;
    A args;
  };

  /// Every combination of dtypes (same_as operands follow) and of absent optional operands.
  template <class Visit>
  void for_each_choice(const Visit& visit) {
    std::vector<DType> dtypes(op_.operands.size());
    uint32_t optional = 0;
    for (size_t i = 0; i < op_.operands.size(); ++i)
      if (op_.operands[i].optional) optional |= 1u << i;
    const auto choose = [&](auto&& self, size_t i) -> void {
      if (i == dtypes.size()) {
        for (size_t j = 0; j < dtypes.size(); ++j)
          if (op_.operands[j].same_as)
            for (size_t k = 0; k < dtypes.size(); ++k)
              if (std::string_view(op_.operands[k].name) == op_.operands[j].same_as) dtypes[j] = dtypes[k];
        for (uint32_t absent = optional;; absent = (absent - 1) & optional) {
          visit(dtypes, absent);
          if (absent == 0) break;
        }
        return;
      }
      if (op_.operands[i].same_as) return self(self, i + 1);
      for (const DType d : op_.operands[i].dtypes) {
        dtypes[i] = d;
        self(self, i + 1);
      }
    };
    choose(choose, 0);
  }

  std::string describe(const Case<A>& c, const std::vector<DType>& dtypes, uint32_t absent,
                       Layout layout) const {
    std::string out = text(op_.name, " ", c.dims, c.name[0] ? " " : "", c.name, " dtypes");
    for (const DType d : dtypes) out += text(" ", dtype_name(d));
    if (absent != 0) out += text(" absent ", absent);
    return out + (layout == Layout::kGapped ? " gapped" : " dense");
  }

  void fail(const std::string& what) {
    if (report_.failures.size() < 20) report_.failures.push_back(what);
  }

  /// Makes the operands of a case; false when this choice of dtypes has no whole blocks or does not apply.
  bool make_inputs(const Case<A>& c, const std::vector<DType>& dtypes, uint32_t absent, Layout layout,
                   Dims* dims, Set* set) {
    const auto names = dim_words(op_.case_dims);
    for (size_t i = 0; i < names.size(); ++i) dims->set(names[i], c.dims.at(i));
    Random random(options_.seed);
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      const auto& o = op_.operands[i];
      set->operands.emplace_back();
      if (absent >> i & 1) continue;
      Shape shape;
      for (const auto& word : dim_words(o.dims))
        shape.push_back(word[0] >= '0' && word[0] <= '9' ? std::atoll(word.c_str()) : (*dims)[word]);
      auto memory =
          HostOperand::make(dtypes[i], shape, is_block_quantized(dtypes[i]) ? Layout::kDense : layout);
      if (!memory.ok()) return false;
      set->operands[i] = memory.take();
      if (o.role != kOut) set->operands[i].fill(random);
      set->args.*o.field = set->operands[i].tensor();
    }
    if (op_.choice_exists && !op_.choice_exists(set->args)) return false;
    if (op_.prepare) op_.prepare(set->args, *dims, random);
    if (c.with) c.with(set->args);
    for (const auto& count : op_.counts) dims->set(count.name, (set->args.*count.field).get());
    return true;
  }

  /// A copy whose operands are new memory.
  Set copy_of(const Set& from) {
    Set out;
    out.args = from.args;
    for (size_t i = 0; i < from.operands.size(); ++i) {
      out.operands.emplace_back();
      if (from.operands[i].base() == nullptr) continue;
      out.operands[i] = from.operands[i].copy().take();
      out.args.*op_.operands[i].field = out.operands[i].tensor();
    }
    return out;
  }

  /// The reference's answer; float outputs in f32.
  Set reference_of(const Set& inputs, bool absolute) {
    Set out = copy_of(inputs);
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      const auto& o = op_.operands[i];
      Tensor& t = out.args.*o.field;
      if (!t) continue;
      if (absolute && o.role != kOut) {
        out.operands[i].make_absolute();
        t = out.operands[i].tensor();
      }
      if (o.role == kOut && (t.dtype == kBF16 || t.dtype == kF16)) {
        out.operands[i] = HostOperand::make(kF32, t.shape, Layout::kDense).take();
        t = out.operands[i].tensor();
      }
    }
    op_.reference(out.args);
    return out;
  }

  void run_case(const Case<A>& c, const std::vector<DType>& dtypes, uint32_t absent, Layout layout) {
    Dims dims;
    Set inputs;
    if (!make_inputs(c, dtypes, absent, layout, &dims, &inputs)) return;
    const std::string where = describe(c, dtypes, absent, layout);
    Dims bound;
    Status ok = bind(op_, inputs.args, &bound);
    if (ok.ok() && op_.check) ok = op_.check(inputs.args, bound);
    if (!ok.ok()) return fail(text(where, ": the case does not pass its own check: ", ok.message()));
    const Set reference = reference_of(inputs, false);
    const Set magnitude = op_.tolerance.needs_magnitude ? reference_of(inputs, true) : Set{};
    for (size_t a = 0; a < active_.size(); ++a) {
      const Judged<A> judged{inputs.args, reference.args, magnitude.args, dims};
      run_kernel(kernels_[active_[a]], report_.kernels[a], inputs, judged, dtypes, where);
    }
  }

  /// Inputs with weights packed as the kernel's target wants them; nothing when it packs none.
  std::optional<Set> packed_of(const Set& inputs, const Kernel<A>& k) {
    if (op_.pack.choose == nullptr) return std::nullopt;
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      if (op_.operands[i].field != op_.pack.operand) continue;
      const Tensor raw = inputs.args.*op_.pack.operand;
      const PackedLayout* chosen = op_.pack.choose({k.backend, k.isa}, raw.dtype, raw.shape);
      if (chosen == nullptr || !raw.is_dense()) return std::nullopt;
      Set out = copy_of(inputs);
      out.operands[i] = HostOperand::make_packed(*chosen, raw.dtype, raw.shape).take();
      op_.pack.run(raw, *chosen, out.operands[i].tensor().data, 0, raw.dim(0));
      out.args.*op_.pack.operand = out.operands[i].tensor();
      return out;
    }
    return std::nullopt;
  }

  void run_kernel(const Kernel<A>& k, KernelReport& report, const Set& inputs, const Judged<A>& judged,
                  const std::vector<DType>& dtypes, const std::string& where) {
    const std::optional<Set> packed = packed_of(inputs, k);
    const Set* use = packed ? &*packed : &inputs;
    Decline no = k.declines ? k.declines(use->args) : Decline{};
    if (no && packed) {
      use = &inputs;
      no = k.declines(use->args);
    }
    if (no) {
      ++report.declines;
      if (std::find(report.declined.begin(), report.declined.end(), no.reason) == report.declined.end() &&
          report.declined.size() < 40)
        report.declined.push_back(no.reason);
      return;
    }
    Set got = copy_of(*use);
    const std::string place = text(where, " kernel ", k.name, " (", k.backend, " ", isa_name(k.isa), ")");
    if (Status s = run_on_device(k, got); !s.ok()) return fail(text(place, ": ", s.message()));
    ++report.runs;
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      if (got.operands[i].base() == nullptr) continue;
      const std::string damage = got.operands[i].damage(use->operands[i]);
      if (!damage.empty()) fail(text(place, ": operand ", op_.operands[i].name, ": ", damage));
      if (op_.operands[i].role != kIn) compare(op_.operands[i], got, judged, report, dtypes, place);
    }
  }

  Status run_on_device(const Kernel<A>& k, Set& set) {
    Device& device = *options_.device;
    RIDGE_ASSIGN(const auto stream, device.create_stream());
    A args = set.args;
    std::vector<DeviceOperand> there(set.operands.size());
    for (size_t i = 0; i < set.operands.size(); ++i) {
      if (set.operands[i].base() == nullptr) continue;
      RIDGE_ASSIGN(there[i], DeviceOperand::upload(device, set.operands[i]));
      args.*op_.operands[i].field = there[i].tensor();
    }
    const int64_t bytes = k.workspace ? k.workspace(args) : 0;
    RIDGE_ASSIGN(const Buffer workspace, device.allocate(bytes));
    RIDGE_ASSIGN(const HostOperand poison, HostOperand::make(kF32, {bytes / 4}, Layout::kDense));
    RIDGE_TRY(device.upload(workspace.data(), poison.tensor().data, bytes / 4 * 4));
    stream->set_workspace(workspace.data(), bytes);
    stream->open_call(op_.name, k.name);
    const Status queued = k.run(*stream, args);
    stream->close_call();
    RIDGE_TRY(queued);
    RIDGE_TRY(stream->synchronize());
    for (size_t i = 0; i < set.operands.size(); ++i)
      if (set.operands[i].base() != nullptr) RIDGE_TRY(there[i].download(device, &set.operands[i]));
    return {};
  }

  void compare(const Operand<A>& o, const Set& got, const Judged<A>& judged, KernelReport& report,
               const std::vector<DType>& dtypes, const std::string& place) {
    const Tensor g = got.args.*o.field, want = judged.reference.*o.field;
    std::string types;
    for (const DType d : dtypes) types += text(types.empty() ? "" : " ", dtype_name(d));
    double& by_dtype = report.worst_by_dtype[types];
    // What is written into has its own type in the reference too: both are rounded, maybe to either side.
    const bool both_rounded = o.role == kInto;
    const auto dim = [&](int d) { return d < g.rank() ? g.dim(d) : 1; };
    for (int64_t i = 0; i < dim(0); ++i)
      for (int64_t j = 0; j < dim(1); ++j)
        for (int64_t k = 0; k < dim(2); ++k)
          for (int64_t l = 0; l < dim(3); ++l) {
            const double a = g.f64(i, j, k, l), b = want.f64(i, j, k, l);
            const double bound = op_.tolerance.bound(judged, o.field, i, j, k, l);
            double ratio = 0;
            ++report_.comparisons;
            if (!within(a, b, bound, g.dtype, &ratio, both_rounded && bound > 0 ? 2 : 1))
              return fail(text(place, ": ", o.name, " [", i, ", ", j, ", ", k, ", ", l, "] is ", a,
                               ", reference ", b, ", bound ", bound));
            by_dtype = std::max(by_dtype, ratio);
            if (ratio > report.worst) report.worst = ratio, report.worst_case = place;
          }
  }

  const Operator<A>& op_;
  const std::vector<Kernel<A>>& kernels_;
  ConformanceOptions options_;
  std::vector<size_t> active_;
  int64_t choices_ = 0;
  ConformanceReport report_;
};

/// Operands with random values for the given case dims (dense; weights packed for `target`), for the bench;
/// scalar arguments as the bench case of those dims has them.
template <class A>
Result<A> make_example(const Operator<A>& op, const Target& target, const std::vector<int64_t>& case_dims,
                       const std::map<std::string, DType>& dtypes, uint64_t seed,
                       std::vector<Buffer>* storage) {
  const auto names = dim_words(op.case_dims);
  if (names.size() != case_dims.size())
    return invalid_argument(op.name, ": shape has ", case_dims.size(), " numbers, needs ", names.size(), ": ",
                            op.case_dims);
  Dims dims;
  for (size_t i = 0; i < names.size(); ++i) dims.set(names[i], case_dims[i]);
  Random random(seed);
  A args{};
  for (const auto& o : op.operands) {
    const auto chosen = dtypes.find(o.name);
    if (o.optional && chosen == dtypes.end()) continue;
    DType dtype = chosen != dtypes.end() ? chosen->second : o.same_as ? kF32 : o.dtypes.front();
    if (o.same_as)
      for (const auto& other : op.operands)
        if (std::string_view(other.name) == o.same_as) dtype = (args.*other.field).dtype;
    Shape shape;
    for (const auto& word : dim_words(o.dims))
      shape.push_back(word[0] >= '0' && word[0] <= '9' ? std::atoll(word.c_str()) : dims[word]);
    RIDGE_ASSIGN(HostOperand memory, HostOperand::make(dtype, shape, Layout::kDense));
    memory.fill(random);
    RIDGE_TRY(check_stop());  // a large weight takes seconds to fill, and again to pack
    const PackedLayout* packed =
        op.pack.operand == o.field && op.pack.choose ? op.pack.choose(target, dtype, shape) : nullptr;
    RIDGE_ASSIGN(const int64_t raw_bytes, tensor_bytes(dtype, shape));
    RIDGE_ASSIGN(Buffer buffer,
                 Buffer::allocate(packed ? packed->bytes(shape[0], shape[1]) : raw_bytes, Pages::kHuge));
    if (packed)
      op.pack.run(memory.tensor(), *packed, buffer.data(), 0, shape[0]);
    else
      std::memcpy(buffer.data(), memory.tensor().data, static_cast<size_t>(raw_bytes));
    Tensor t(buffer.data(), dtype, shape);
    t.layout = packed;
    args.*o.field = t;
    storage->push_back(std::move(buffer));
  }
  if (op.prepare) op.prepare(args, dims, random);
  for (const Case<A>& c : op.cases)
    if ((c.flags & kBench) != 0 && c.dims == case_dims && c.with) c.with(args);
  return args;
}

}  // namespace ridge
