#include "lab/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/stop.h"

namespace ridge {

namespace {

struct Output {
  std::string label, op, operand, kernel;
  std::vector<float> values;
};

/// Keeps a copy of every float output while it is there: plans reuse the memory.
class OutputKeeper final : public StepObserver {
 public:
  void on_step(const StepFacts&, const StepPlan&) override {}
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  bool wants_calls() const override { return true; }
  void on_call(const StepPlan& plan, size_t index) override {
    const PlannedCall& planned = plan.calls()[index];
    const auto& infos = planned.call.op->operands();
    for (size_t i = 0; i < infos.size(); ++i) {
      const Tensor& t = planned.call.op->operand(planned.call.args.get(), static_cast<int>(i));
      // Pages of the cache are inputs of the attention that follows: its output shows them.
      if (!t || infos[i].role == Role::kIn || infos[i].data_class != DataClass::kActivations ||
          t.dtype != kF32)
        continue;
      if (!t.is_dense()) continue;
      auto values = plan.read_f32(t);
      if (!values.ok()) continue;
      outputs.push_back({planned.call.label, planned.call.op->name(), infos[i].name,
                         planned.call.op->kernel_name(planned.selection), values.take()});
    }
  }
  std::vector<Output> outputs;
};

Result<std::vector<Output>> outputs_of(Session& session, const std::vector<int32_t>& prompt) {
  OutputKeeper keeper;
  session.engine().set_observer(&keeper);
  Request request;
  request.prompt = prompt;
  request.max_new_tokens = 1;
  Status status = session.engine().submit(std::move(request)).status();
  while (status.ok() && !session.engine().idle()) {
    status = check_stop();
    if (status.ok()) status = session.engine().step().status();
  }
  session.engine().set_observer(nullptr);
  RIDGE_TRY(status);
  return std::move(keeper.outputs);
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = double(a[i]) - double(b[i]);
    difference += d * d, size += double(a[i]) * double(a[i]);
  }
  if (!std::isfinite(difference) || !std::isfinite(size)) return HUGE_VAL;
  return size > 0 ? std::sqrt(difference / size) : difference > 0 ? HUGE_VAL : 0;
}

}  // namespace

Result<Comparison> compare_sessions(Session& a, Session& b, const std::vector<int32_t>& prompt,
                                    double bound) {
  RIDGE_ASSIGN(const auto left, outputs_of(a, prompt));
  RIDGE_ASSIGN(const auto right, outputs_of(b, prompt));
  // By place; a place that comes several times (one a chunk) is taken in order.
  std::map<std::string, std::vector<const Output*>> by_place;
  const auto place = [](const Output& o) { return text(o.label, "/", o.op, "/", o.operand); };
  for (const Output& o : right) by_place[place(o)].push_back(&o);
  std::map<std::string, size_t> taken;
  Comparison c;
  for (const Output& o : left) {
    RIDGE_TRY(check_stop());
    const auto found = by_place.find(place(o));
    size_t& next = taken[place(o)];
    if (found == by_place.end() || next >= found->second.size()) continue;
    const Output& other = *found->second[next++];
    if (other.values.size() != o.values.size()) continue;
    ++c.outputs;
    const Difference d{o.label, o.op, o.kernel, other.kernel, relative_error(o.values, other.values)};
    if (d.error > bound && !c.first) c.first = d;
    c.worst.push_back(d);
  }
  if (c.outputs == 0) return invalid_argument("the two configurations have no call in common");
  std::stable_sort(c.worst.begin(), c.worst.end(),
                   [](const auto& x, const auto& y) { return x.error > y.error; });
  if (c.worst.size() > 10) c.worst.resize(10);
  return c;
}

}  // namespace ridge
