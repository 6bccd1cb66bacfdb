#include "ops/conformance.h"

#include <algorithm>

#include "ops/binding.h"
#include "ops/erased_operator.h"

namespace ridge {

struct Conformance::Judging {
  JudgedArgs args;
  const std::vector<DType>& dtypes;
  const std::string& where;
};

ConformanceReport Conformance::run() {
  const Target& target = options_.device->target();
  const std::vector<KernelInfo> kernels = op_.kernels();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelInfo& k = kernels[i];
    if (k.backend != target.backend || k.isa > target.isa) continue;
    if (options_.only != Isa::none && k.isa != options_.only) continue;
    active_.push_back(i);
    report_.kernels.push_back({k.name, k.backend, k.isa, 0, 0, 0, "", {}, {}});
  }
  for (size_t c = 0; c < op_.cases().size(); ++c) {
    if ((op_.cases()[c].flags & (kBench | kSlow)) && !options_.slow) continue;
    for_each_choice([&](const std::vector<DType>& dtypes, uint32_t absent) {
      for (const Layout layout : {Layout::kDense, Layout::kGapped})
        if (choices_++ % options_.every == 0) run_case(c, dtypes, absent, layout);
    });
  }
  return std::move(report_);
}

/// Every combination of dtypes (same_as operands follow) and of absent optional operands.
template <class Visit>
void Conformance::for_each_choice(const Visit& visit) {
  const auto& operands = op_.operands();
  std::vector<DType> dtypes(operands.size());
  uint32_t optional = 0;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].optional) optional |= 1u << i;
  const auto choose = [&](auto&& self, size_t i) -> void {
    if (i == dtypes.size()) {
      for (size_t j = 0; j < dtypes.size(); ++j)
        if (operands[j].same_as)
          for (size_t k = 0; k < dtypes.size(); ++k)
            if (std::string_view(operands[k].name) == operands[j].same_as) dtypes[j] = dtypes[k];
      for (uint32_t absent = optional;; absent = (absent - 1) & optional) {
        visit(dtypes, absent);
        if (absent == 0) break;
      }
      return;
    }
    if (operands[i].same_as) return self(self, i + 1);
    for (const DType d : operands[i].dtypes) {
      dtypes[i] = d;
      self(self, i + 1);
    }
  };
  choose(choose, 0);
}

std::string Conformance::describe(size_t index, const std::vector<DType>& dtypes, uint32_t absent,
                                  Layout layout) const {
  const CaseInfo& c = op_.cases()[index];
  std::string out = text(op_.name(), " ", c.dims, c.name[0] ? " " : "", c.name, " dtypes");
  for (const DType d : dtypes) out += text(" ", dtype_name(d));
  if (absent != 0) out += text(" absent ", absent);
  return out + (layout == Layout::kGapped ? " gapped" : " dense");
}

void Conformance::fail(const std::string& what) {
  if (report_.failures.size() < 20) report_.failures.push_back(what);
}

/// Makes the operands of a case; false when this choice of dtypes has no whole blocks or does not apply.
bool Conformance::make_inputs(size_t index, const std::vector<DType>& dtypes, uint32_t absent, Layout layout,
                              Dims* dims, Set* set) {
  const auto names = dim_words(op_.case_dims());
  for (size_t i = 0; i < names.size(); ++i) dims->set(names[i], op_.cases()[index].dims.at(i));
  Random random(options_.seed);
  set->args = op_.new_args();
  for (size_t i = 0; i < op_.operands().size(); ++i) {
    const OperandInfo& o = op_.operands()[i];
    set->operands.emplace_back();
    if (absent >> i & 1) continue;
    auto memory = HostOperand::make(dtypes[i], shape_of(o.dims, *dims),
                                    is_block_quantized(dtypes[i]) ? Layout::kDense : layout);
    if (!memory.ok()) return false;
    set->operands[i] = memory.take();
    if (o.role != kOut) set->operands[i].fill(random);
    op_.operand(set->args.get(), static_cast<int>(i)) = set->operands[i].tensor();
  }
  if (!op_.choice_exists(set->args.get())) return false;
  op_.prepare(set->args.get(), *dims, random);
  op_.set_case(index, set->args.get());
  op_.add_counts(set->args.get(), dims);
  return true;
}

/// A copy whose operands are new memory.
Conformance::Set Conformance::copy_of(const Set& from) {
  Set out;
  out.args = op_.clone_args(from.args.get());
  for (size_t i = 0; i < from.operands.size(); ++i) {
    out.operands.emplace_back();
    if (from.operands[i].base() == nullptr) continue;
    out.operands[i] = from.operands[i].copy().take();
    op_.operand(out.args.get(), static_cast<int>(i)) = out.operands[i].tensor();
  }
  return out;
}

/// The reference's answer; float outputs in f32.
Conformance::Set Conformance::reference_of(const Set& inputs, bool absolute) {
  Set out = copy_of(inputs);
  for (size_t i = 0; i < op_.operands().size(); ++i) {
    const Role role = op_.operands()[i].role;
    Tensor& t = op_.operand(out.args.get(), static_cast<int>(i));
    if (!t) continue;
    if (absolute && role != kOut) {
      out.operands[i].make_absolute();
      t = out.operands[i].tensor();
    }
    if (role == kOut && (t.dtype == kBF16 || t.dtype == kF16)) {
      out.operands[i] = HostOperand::make(kF32, t.shape, Layout::kDense).take();
      t = out.operands[i].tensor();
    }
  }
  op_.reference(out.args.get());
  return out;
}

void Conformance::run_case(size_t index, const std::vector<DType>& dtypes, uint32_t absent, Layout layout) {
  Dims dims;
  Set inputs;
  if (!make_inputs(index, dtypes, absent, layout, &dims, &inputs)) return;
  const std::string where = describe(index, dtypes, absent, layout);
  Dims bound;
  Status ok = op_.bind(inputs.args.get(), &bound);
  if (ok.ok()) ok = op_.check_further(inputs.args.get(), bound);
  if (!ok.ok()) return fail(text(where, ": the case does not pass its own check: ", ok.message()));
  const Set reference = reference_of(inputs, false);
  const Set magnitude = op_.needs_magnitude() ? reference_of(inputs, true) : Set{{}, op_.new_args()};
  const Judging judging{{inputs.args.get(), reference.args.get(), magnitude.args.get(), dims}, dtypes, where};
  for (size_t a = 0; a < active_.size(); ++a) run_kernel(active_[a], report_.kernels[a], inputs, judging);
}

/// Inputs with weights packed as the kernel's target wants them; nothing when it packs none.
std::optional<Conformance::Set> Conformance::packed_of(const Set& inputs, size_t kernel) {
  if (op_.packed_operand() < 0) return std::nullopt;
  const auto i = static_cast<size_t>(op_.packed_operand());
  const KernelInfo k = op_.kernels()[kernel];
  const Tensor raw = op_.operand_at(inputs.args.get(), i);
  const PackedLayout* chosen = op_.packed_layout({k.backend, k.isa}, raw.dtype, raw.shape);
  if (chosen == nullptr || !raw.is_dense()) return std::nullopt;
  Set out = copy_of(inputs);
  out.operands[i] = HostOperand::make_packed(*chosen, raw.dtype, raw.shape).take();
  op_.pack_rows(raw, *chosen, out.operands[i].tensor().data, 0, raw.dim(0));
  op_.operand(out.args.get(), static_cast<int>(i)) = out.operands[i].tensor();
  return out;
}

void Conformance::run_kernel(size_t kernel, KernelReport& report, const Set& inputs, const Judging& judging) {
  const std::optional<Set> packed = packed_of(inputs, kernel);
  const Set* use = packed ? &*packed : &inputs;
  Decline no = op_.kernel_declines(kernel, use->args.get());
  if (no && packed) {
    use = &inputs;
    no = op_.kernel_declines(kernel, use->args.get());
  }
  if (no) {
    ++report.declines;
    if (std::find(report.declined.begin(), report.declined.end(), no.reason) == report.declined.end() &&
        report.declined.size() < 40)
      report.declined.push_back(no.reason);
    return;
  }
  Set got = copy_of(*use);
  const std::string place =
      text(judging.where, " kernel ", report.kernel, " (", report.backend, " ", isa_name(report.isa), ")");
  if (Status s = run_on_device(kernel, got); !s.ok()) return fail(text(place, ": ", s.message()));
  ++report.runs;
  for (size_t i = 0; i < op_.operands().size(); ++i) {
    if (got.operands[i].base() == nullptr) continue;
    const std::string damage = got.operands[i].damage(use->operands[i]);
    if (!damage.empty()) fail(text(place, ": operand ", op_.operands()[i].name, ": ", damage));
    if (op_.operands()[i].role != kIn) compare(i, got, judging, report, place);
  }
}

Status Conformance::run_on_device(size_t kernel, Set& set) {
  Device& device = *options_.device;
  RIDGE_ASSIGN(const auto stream, device.create_stream());
  const std::shared_ptr<void> args = op_.clone_args(set.args.get());
  std::vector<DeviceOperand> there(set.operands.size());
  for (size_t i = 0; i < set.operands.size(); ++i) {
    if (set.operands[i].base() == nullptr) continue;
    RIDGE_ASSIGN(there[i], DeviceOperand::upload(device, set.operands[i]));
    op_.operand(args.get(), static_cast<int>(i)) = there[i].tensor();
  }
  const int64_t bytes = op_.kernel_workspace(kernel, args.get());
  RIDGE_ASSIGN(const Buffer workspace, device.allocate(bytes));
  RIDGE_ASSIGN(const HostOperand poison, HostOperand::make(kF32, {bytes / 4}, Layout::kDense));
  RIDGE_TRY(device.upload(workspace.data(), poison.tensor().data, bytes / 4 * 4));
  stream->set_workspace(workspace.data(), bytes);
  const std::string name = op_.kernels()[kernel].name;
  stream->open_call(op_.name(), name);
  const Status queued = op_.run_kernel(kernel, *stream, args.get());
  stream->close_call();
  RIDGE_TRY(queued);
  RIDGE_TRY(stream->synchronize());
  for (size_t i = 0; i < set.operands.size(); ++i)
    if (set.operands[i].base() != nullptr) RIDGE_TRY(there[i].download(device, &set.operands[i]));
  return {};
}

void Conformance::compare(size_t operand, const Set& got, const Judging& judging, KernelReport& report,
                          const std::string& place) {
  const OperandInfo& o = op_.operands()[operand];
  const Tensor g = op_.operand_at(got.args.get(), operand),
               want = op_.operand_at(judging.args.reference, operand);
  std::string types;
  for (const DType d : judging.dtypes) types += text(types.empty() ? "" : " ", dtype_name(d));
  double& by_dtype = report.worst_by_dtype[types];
  // What is written into has its own type in the reference too: both are rounded, maybe to either side.
  const bool both_rounded = o.role == kInto;
  const auto dim = [&](int d) { return d < g.rank() ? g.dim(d) : 1; };
  for (int64_t i = 0; i < dim(0); ++i)
    for (int64_t j = 0; j < dim(1); ++j)
      for (int64_t k = 0; k < dim(2); ++k)
        for (int64_t l = 0; l < dim(3); ++l) {
          const double a = g.f64(i, j, k, l), b = want.f64(i, j, k, l);
          const double bound = op_.bound(judging.args, operand, i, j, k, l);
          double ratio = 0;
          ++report_.comparisons;
          if (!within(a, b, bound, g.dtype, &ratio, both_rounded && bound > 0 ? 2 : 1))
            return fail(text(place, ": ", o.name, " [", i, ", ", j, ", ", k, ", ", l, "] is ", a,
                             ", reference ", b, ", bound ", bound));
          by_dtype = std::max(by_dtype, ratio);
          if (ratio > report.worst) report.worst = ratio, report.worst_case = place;
        }
}

}  // namespace ridge
