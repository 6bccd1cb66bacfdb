#include "lab/price_book.h"

#include <map>

#include "base/text.h"
#include "lab/formats_of.h"

namespace ridge {

namespace {

/// Everything that the cost of a call depends on, its batch_values() aside.
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
  return out;
}

}  // namespace

PriceBook::PriceBook(const StepPlan& plan) : names_(plan.calls().size()) {
  std::map<std::string, size_t> known;
  for (const PlannedCall& planned : plan.calls()) {
    const auto [found, fresh] = known.emplace(signature(planned), groups_.size());
    if (fresh) {
      Group g;
      g.kernel = planned.call.op->kernel_name(planned.selection), g.formats = formats_of(planned.call);
      groups_.push_back(std::move(g));
    }
    group_of_.push_back(found->second);
  }
}

PriceBook::Group& PriceBook::price(const StepPlan& plan, size_t index) {
  Group& g = groups_[group_of_[index]];
  if (g.cost != nullptr && g.batch.empty()) return g;
  const AnyCall& call = plan.calls()[index].call;
  batch_.clear();
  call.op->batch_values(call.args.get(), &batch_);
  if (g.cost != nullptr && batch_ == g.batch) return g;
  g.batch = batch_;
  g.cost = std::make_shared<const Cost>(plan.cost(index));
  std::string shape = call.op->shape(call.args.get());
  if (shape != g.shape) g.shape = std::move(shape), g.row = kNone;
  return g;
}

const std::shared_ptr<const CallName>& PriceBook::name_of(const StepPlan& plan, size_t index,
                                                          const Group& g) {
  std::shared_ptr<const CallName>& name = names_[index];
  if (name == nullptr || name->shape != g.shape) {
    const AnyCall& call = plan.calls()[index].call;
    name = std::make_shared<const CallName>(CallName{call.op->name(), call.label, g.kernel, g.shape});
  }
  return name;
}

}  // namespace ridge
