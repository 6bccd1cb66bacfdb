#include "lab/probe_kernels.h"

#include <algorithm>
#include <cmath>

#include "account/recorder.h"
#include "base/stop.h"
#include "lab/formats_of.h"

namespace ridge {

namespace {

using Formats = std::map<std::string, DType>;

bool stored(const OperandInfo& o) {
  return !o.optional && o.dtypes.size() > 1 &&
         (o.data_class == DataClass::kWeights || o.data_class == DataClass::kKv);
}

/// Formats that calls of the operator come in: all stored operands in one of theirs, inputs in f32 or, where
/// the operator takes them so, in 8 bits.
std::vector<Formats> formats_for(const AnyOperator& op) {
  std::vector<DType> types;
  for (const OperandInfo& o : op.operands())
    if (types.empty() && stored(o)) types = o.dtypes;
  std::vector<Formats> out;
  if (types.empty()) out.emplace_back();
  for (const DType type : types) {
    Formats f;
    for (const OperandInfo& o : op.operands())
      if (stored(o)) f[o.name] = type;
    out.push_back(std::move(f));
  }
  for (size_t i = 0, plain = out.size(); i < plain; ++i) {
    Formats f = out[i];
    for (const OperandInfo& o : op.operands())
      if (o.role == Role::kIn && o.data_class == DataClass::kActivations &&
          std::find(o.dtypes.begin(), o.dtypes.end(), kI8) != o.dtypes.end())
        f[o.name] = kI8;
    if (f != out[i]) out.push_back(std::move(f));
  }
  return out;
}

struct Example {
  AnyCall call;
  Selection selection;
  std::vector<Buffer> storage;
};

/// The case in these formats, without scales or, when it needs them, with them; op null: there is no such
/// call, or no kernel for it.
Result<Example> example_of(AnyOperator& op, const Target& target, size_t index, Formats formats) {
  for (const bool scales : {false, true}) {
    for (const OperandInfo& o : op.operands())
      if (scales && o.optional && o.data_class == DataClass::kScales) formats[o.name] = kF32;
    Example e;
    RIDGE_ASSIGN(e.call, op.pace_example(target, index, formats, 1, &e.storage));
    if (!op.check(e.call.args.get()).ok()) continue;
    const auto selection = op.select(target, e.call.args.get());
    if (!selection.ok() || selection->kernel < 0) continue;
    e.selection = *selection;
    return e;
  }
  return Example{};
}

/// The least time of a call. Goes on, to a few times `seconds`, for as long as a faster one turns up: a busy
/// machine only ever makes a call slower.
Result<double> least_us(AnyOperator& op, const Example& e, Stream& stream, double seconds) {
  RIDGE_TRY(check_stop());
  RIDGE_ASSIGN(Buffer workspace, Buffer::allocate(e.selection.workspace_bytes));
  stream.set_workspace(workspace.data(), workspace.bytes());
  const auto timed = [&](int64_t calls) -> Result<double> {
    const int64_t begin = now_ns();
    for (int64_t i = 0; i < calls; ++i) RIDGE_TRY(op.run(e.selection, stream, e.call.args.get()));
    return static_cast<double>(now_ns() - begin) / 1e3 / static_cast<double>(calls);
  };
  RIDGE_TRY(timed(1).status());
  RIDGE_ASSIGN(double least, timed(1));
  // Rounds of 20 us and more: the clock is read in 0.02 us.
  const auto calls = static_cast<int64_t>(std::clamp(20 / std::max(least, 1e-3), 1.0, 1000.0));
  const auto window = static_cast<int64_t>(seconds * 1e9);
  const int64_t begin = now_ns();
  for (int64_t stop = begin + window; now_ns() < stop;) {
    RIDGE_ASSIGN(const double us, timed(calls));
    if (us < 0.98 * least) stop = std::min(now_ns() + window, begin + 4 * window);
    least = std::min(least, us);
  }
  return least;
}

KernelPace& pace_of(std::vector<KernelPace>* all, const Example& e) {
  AnyOperator& op = *e.call.op;
  KernelPace key{
      op.name(), op.kernel_name(e.selection), formats_of(e.call), op.pace_dims(e.call.args.get()), {}};
  for (KernelPace& k : *all)
    if (k.op == key.op && k.kernel == key.kernel && k.formats == key.formats && k.dims == key.dims) return k;
  all->push_back(std::move(key));
  return all->back();
}

}  // namespace

Result<std::vector<KernelPace>> measure_pace(Device& device, const std::vector<AnyOperator*>& operators,
                                             const PaceOptions& options) {
  std::vector<KernelPace> out;
  RIDGE_ASSIGN(const auto stream, device.create_stream());
  for (size_t i = 0; i < operators.size(); ++i) {
    AnyOperator& op = *operators[i];
    if (op.pace_cases() == 0) continue;
    for (const Formats& formats : formats_for(op))
      for (size_t c = 0; c < op.pace_cases(); ++c) {
        RIDGE_ASSIGN(const Example e, example_of(op, device.target(), c, formats));
        if (e.call.op == nullptr) continue;
        RIDGE_ASSIGN(const double us, least_us(op, e, *stream, options.seconds_per_point));
        pace_of(&out, e).points.push_back({pace_work(op.cost(e.selection, e.call.args.get())), us});
      }
    if (options.progress)
      options.progress(static_cast<double>(i + 1) / static_cast<double>(operators.size()));
  }
  for (KernelPace& k : out)
    std::sort(k.points.begin(), k.points.end(),
              [](const PacePoint& a, const PacePoint& b) { return a.work < b.work; });
  return out;
}

}  // namespace ridge
