#include "lab/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/stop.h"
#include "lab/call_reader.h"

namespace ridge {

namespace {

struct Output {
  std::string label, op, kernel;
  FloatOutput floats;
};

/// Judges every call while its outputs are there, and keeps a copy of those of the prompt: plans reuse the
/// memory.
class CallObserver final : public StepObserver {
 public:
  void on_step(const StepFacts&, const StepPlan&) override {}
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  bool wants_calls() const override { return true; }
  void on_call(const StepPlan& plan, size_t index) override {
    if (!status.ok()) return;
    status = observe(plan, index);
  }

  JudgedSide side;
  std::vector<Output> outputs;
  bool keep = true;
  Status status;

 private:
  Status observe(const StepPlan& plan, size_t index) {
    RIDGE_TRY(check_stop());
    if (plan_ != plan.id() || next_ != index) {  // the first call, which changes none of its operands
      RIDGE_ASSIGN(before_, args_before(plan, index));
    }
    RIDGE_ASSIGN(HostArgs after, args_after(plan, index));
    const PlannedCall& planned = plan.calls()[index];
    RIDGE_TRY(judge(planned, after).within(planned.call.label));
    if (keep)
      for (FloatOutput& o : float_outputs(*planned.call.op, after.args.get()))
        outputs.push_back({planned.call.label, planned.call.op->name(),
                           planned.call.op->kernel_name(planned.selection), std::move(o)});
    // What this call's inputs are copied to is not given back before the next one's have memory: bounds tell
    // calls apart by address.
    earlier_ = std::move(before_), before_ = {};
    plan_ = plan.id(), next_ = index + 1;
    if (next_ < plan.calls().size()) {
      RIDGE_ASSIGN(before_, args_before(plan, next_));
    }
    return {};
  }

  Status judge(const PlannedCall& planned, const HostArgs& after) {
    const auto* judge = dynamic_cast<const CallJudge*>(planned.call.op);
    auto judged = judge != nullptr ? judge->judge(before_.args.get(), after.args.get())
                                   : Result<Judgement>(declined("no judge"));
    const std::string op = planned.call.op->name();
    if (!judged.ok() && judged.status().code() == Code::kDeclined) {
      if (std::find(side.unjudged.begin(), side.unjudged.end(), op) == side.unjudged.end())
        side.unjudged.push_back(op);
      return {};
    }
    RIDGE_TRY(judged.status());
    ++side.calls;
    JudgedOutput output{planned.call.label, op, planned.call.op->kernel_name(planned.selection),
                        judged.take()};
    if (output.judgement.beyond() && !side.first) side.first = output;
    if (!side.worst || output.judgement.ratio > side.worst->judgement.ratio) side.worst = std::move(output);
    return {};
  }

  uint64_t plan_ = 0;
  size_t next_ = 0;
  HostArgs before_, earlier_;
};

Status observe(Session& session, const std::vector<int32_t>& prompt, CallObserver* observer) {
  session.engine().set_observer(observer);
  Request request;
  request.prompt = prompt;
  request.max_new_tokens = 2;
  Status status = session.engine().submit(std::move(request)).status();
  while (status.ok() && !session.engine().idle()) {
    auto events = session.engine().step();
    status = events.ok() ? observer->status : events.status();
    // From the first token on the two may go different ways.
    if (status.ok() && !events->empty()) observer->keep = false;
  }
  session.engine().set_observer(nullptr);
  return status;
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

/// By place; a place that comes several times (one a chunk) is taken in order.
void hold_to_each_other(const std::vector<Output>& left, const std::vector<Output>& right,
                        std::optional<double> bound, Comparison* c) {
  std::map<std::string, std::vector<const Output*>> by_place;
  const auto place = [](const Output& o) { return text(o.label, "/", o.op, "/", o.floats.operand); };
  for (const Output& o : right) by_place[place(o)].push_back(&o);
  std::map<std::string, size_t> taken;
  for (const Output& o : left) {
    const auto found = by_place.find(place(o));
    size_t& next = taken[place(o)];
    if (found == by_place.end() || next >= found->second.size()) continue;
    const Output& other = *found->second[next++];
    if (other.floats.values.size() != o.floats.values.size()) continue;
    ++c->outputs;
    const Difference d{o.label,  o.op,         o.floats.operand,
                       o.kernel, other.kernel, relative_error(o.floats.values, other.floats.values)};
    if (bound && d.error > *bound && !c->too_far) c->too_far = d;
    c->apart.push_back(d);
  }
  std::stable_sort(c->apart.begin(), c->apart.end(),
                   [](const auto& x, const auto& y) { return x.error > y.error; });
  if (c->apart.size() > 10) c->apart.resize(10);
}

}  // namespace

Result<Comparison> compare_sessions(Session& a, Session& b, const std::vector<int32_t>& prompt,
                                    std::optional<double> bound) {
  CallObserver left, right;
  RIDGE_TRY(observe(a, prompt, &left));
  RIDGE_TRY(observe(b, prompt, &right));
  Comparison c;
  c.a = std::move(left.side), c.b = std::move(right.side);
  hold_to_each_other(left.outputs, right.outputs, bound, &c);
  if (c.outputs == 0) return invalid_argument("the two configurations have no call in common");
  return c;
}

}  // namespace ridge
