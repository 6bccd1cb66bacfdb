#include "lab/price_book.h"

#include <map>

#include "base/text.h"
#include "lab/formats_of.h"

namespace ridge {

namespace {

/// Everything that the cost of a call depends on, its batch_values() by where they come from.
std::string signature(const PlannedCall& planned) {
  const AnyCall& call = planned.call;
  std::string out = text(call.op->name(), " ", planned.selection.kernel);
  for (size_t i = 0; i < call.op->operands().size(); ++i) {
    const Tensor& t = call.op->operand(call.args.get(), static_cast<int>(i));
    out += t ? text(" ", dtype_name(t.dtype)) : " -";
    for (int d = 0; t && d < t.rank(); ++d) out += text("x", t.dim(d));
  }
  for (const std::string& name : call.op->params()) {
    if (call.op->count(call.args.get(), name)) continue;
    const auto scalar = call.op->get_param(call.args.get(), name);
    out += text(" ", scalar.ok() ? *scalar : 0);
  }
  std::vector<std::pair<const void*, int64_t>> sources;
  call.op->batch_sources(call.args.get(), &sources);
  for (const auto& [address, value] : sources)
    out += text(" ", reinterpret_cast<uintptr_t>(address), "+", value);
  return out;
}

}  // namespace

PriceBook::PriceBook(const StepPlan& plan) {
  std::map<std::string, size_t> known;
  std::vector<std::pair<const void*, int64_t>> sources;
  for (const PlannedCall& planned : plan.calls()) {
    const AnyCall& call = planned.call;
    const auto [found, fresh] = known.emplace(signature(planned), groups_.size());
    if (fresh) {
      Group g;
      g.op = call.op, g.selection = planned.selection;
      g.kernel = call.op->kernel_name(planned.selection), g.formats = formats_of(call);
      g.fixed_shape = call.op->fixed_shape(call.args.get()), g.launches = planned.launches;
      groups_.push_back(std::move(g));
      sources.clear();
      call.op->batch_sources(call.args.get(), &sources);
      place_of_.push_back(sources.empty() ? kNone : varying_.size());
      if (!sources.empty()) varying_.push_back(group_of_.size());
    }
    group_of_.push_back(found->second);
    names_.push_back(std::make_shared<const CallName>(CallName{
        call.op->name(), call.label, groups_[found->second].kernel, "", groups_[found->second].formats}));
  }
}

PriceBook::Group& PriceBook::price(size_t index, const void* args) {
  Group& g = groups_[group_of_[index]];
  if (g.cost != nullptr && place_of(index) == kNone) return g;
  batch_.clear();
  g.op->batch_values(args, &batch_);
  if (g.cost != nullptr && batch_ == g.batch) return g;
  g.batch = batch_;
  g.cost = std::make_shared<const Cost>(g.op->cost(g.selection, args));
  std::string shape = g.op->shape(args);
  if (shape != g.shape) g.shape = std::move(shape), g.row = kNone;
  return g;
}

const std::shared_ptr<const CallName>& PriceBook::name_of(size_t call, const std::string& shape) {
  std::shared_ptr<const CallName>& name = names_[call];
  if (name->shape != shape)
    name =
        std::make_shared<const CallName>(CallName{name->op, name->label, name->kernel, shape, name->formats});
  return name;
}

}  // namespace ridge
