#include "lab/probe_kernels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "account/recorder.h"
#include "base/stop.h"
#include "lab/formats_of.h"
#include "lab/probe.h"
#include "lab/probe_loops.h"

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

/// Those of one point, at the time when it begins.
struct Effort {
  double seconds = 0;
  int starts = 15;  // tries of a call that begins with its data fetched
  bool far = true;
};

Result<Effort> effort_now(const PaceOptions& o) {
  RIDGE_TRY(check_stop());
  const int64_t now = now_ns();
  if (now > o.end_ns) return declined("the kernels were not measured in the time that they had");
  if (now > o.hurry_ns) return Effort{0, 1, false};
  return Effort{o.seconds_per_point};
}

/// The least time of a call. Goes on, to a few times `seconds`, for as long as a faster one turns up: a busy
/// machine only ever makes a call slower.
Result<double> least_us(AnyOperator& op, const Example& e, Stream& stream, double seconds) {
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

/// Other data, read between two calls.
struct Others {
  ProbeLoops loops;
  Buffer memory;
  std::atomic<float> sink{0};
  void pass_by() { sink.store(loops.read(memory.data(), memory.bytes()), std::memory_order_relaxed); }
  void fetch(const AnyCall& call) {
    for (size_t i = 0; i < call.op->operands().size(); ++i)
      if (const Tensor& t = call.op->operand(call.args.get(), static_cast<int>(i)))
        sink.store(loops.read(t.data, t.bytes() / 1024 * 1024), std::memory_order_relaxed);
  }
};
// About what a layer of a small model has for each thread, and more than a core's own caches hold.
constexpr int64_t kOtherBytes = 2 << 20;

/// KernelPace::start_us, of a call that takes `least` by itself: the least of some, as everywhere here.
Result<double> start_of(AnyOperator& op, const Example& e, Stream& stream, Others* others, double least,
                        int tries) {
  RIDGE_ASSIGN(Buffer workspace, Buffer::allocate(e.selection.workspace_bytes));
  stream.set_workspace(workspace.data(), workspace.bytes());
  double found = HUGE_VAL;
  for (int i = 0; i < tries; ++i) {
    others->pass_by();
    others->fetch(e.call);
    stream.set_metering(true);
    const int64_t begin = now_ns();
    const Status status = op.run(e.selection, stream, e.call.args.get());
    const int64_t end = now_ns();
    stream.set_metering(false);
    RIDGE_TRY(status);
    found = std::min(found, static_cast<double>(end - begin) / 1e3);
  }
  return std::max(0.0, found - least);
}

/// Calls like one, each with weights and KV of its own.
struct FarCalls {
  std::vector<AnyCall> calls;
  int64_t bytes = 0;  // that one call reads of them
  Buffer memory;
};
// More than the caches hold, but for the largest last levels, where a model of this size lies as well.
constexpr int64_t kFarBytes = 96 << 20;

Result<FarCalls> far_calls(const Example& e) {
  const AnyOperator& op = *e.call.op;
  FarCalls far;
  std::vector<int> operands;
  for (size_t i = 0; i < op.operands().size(); ++i) {
    const OperandInfo& o = op.operands()[i];
    if (o.role != Role::kIn || (o.data_class != DataClass::kWeights && o.data_class != DataClass::kKv))
      continue;
    const Tensor& t = op.operand(e.call.args.get(), static_cast<int>(i));
    if (!t || !t.is_dense()) continue;
    operands.push_back(static_cast<int>(i)), far.bytes += (t.bytes() + 1023) / 1024 * 1024;
  }
  if (far.bytes < (16 << 10) || far.bytes > kFarBytes / 8) return FarCalls{};
  RIDGE_ASSIGN(far.memory, Buffer::allocate(kFarBytes, Pages::kHuge));
  std::byte* at = far.memory.begin();
  for (int64_t c = 0; c < kFarBytes / far.bytes; ++c) {
    AnyCall call{e.call.op, op.clone_args(e.call.args.get()), ""};
    for (const int i : operands) {
      Tensor& t = op.operand(call.args.get(), i);
      std::memcpy(at, t.data, static_cast<size_t>(t.bytes()));
      t.data = at, at += (t.bytes() + 1023) / 1024 * 1024;
    }
    far.calls.push_back(std::move(call));
  }
  return far;
}

/// KernelPace::exposed, of a call that takes `own_us` with everything near.
Result<double> exposed_of(AnyOperator& op, const Example& e, Stream& stream, Others* others, double own_us) {
  RIDGE_ASSIGN(const FarCalls far, far_calls(e));
  if (far.calls.empty()) return 0.0;
  RIDGE_ASSIGN(Buffer workspace, Buffer::allocate(e.selection.workspace_bytes));
  stream.set_workspace(workspace.data(), workspace.bytes());
  constexpr int kTries = 3;
  // Beyond it the call's own time repeats too badly to see what reading adds to it.
  constexpr double kMostBeside = 12;
  const auto calls = static_cast<double>(far.calls.size());
  double read_us = HUGE_VAL, call_us = HUGE_VAL;
  for (int i = 0; i < kTries; ++i) {  // in turns: memory is not the same from second to second
    int64_t begin = now_ns();
    for (size_t c = 0; c < far.calls.size(); ++c)
      others->sink.store(
          others->loops.read(far.memory.begin() + static_cast<int64_t>(c) * far.bytes, far.bytes),
          std::memory_order_relaxed);
    read_us = std::min(read_us, static_cast<double>(now_ns() - begin) / 1e3 / calls);
    if (own_us > kMostBeside * read_us) return 0.0;
    begin = now_ns();
    for (const AnyCall& call : far.calls) RIDGE_TRY(op.run(e.selection, stream, call.args.get()));
    call_us = std::min(call_us, static_cast<double>(now_ns() - begin) / 1e3 / calls);
  }
  return std::clamp((call_us - std::max(own_us, read_us)) / std::min(own_us, read_us), 0.0, 1.0);
}

/// The examples of a kernel's points.
struct PacedExamples {
  size_t pace;  // in the list of all
  std::vector<Example> examples;
};

/// The place of e's kernel, formats and dims among all.
size_t pace_of(std::vector<KernelPace>* all, const Example& e) {
  AnyOperator& op = *e.call.op;
  KernelPace key{
      op.name(), op.kernel_name(e.selection), formats_of(e.call), op.pace_dims(e.call.args.get()), {}, 0, 0};
  for (size_t i = 0; i < all->size(); ++i) {
    const KernelPace& k = (*all)[i];
    if (k.op == key.op && k.kernel == key.kernel && k.formats == key.formats && k.dims == key.dims) return i;
  }
  all->push_back(std::move(key));
  return all->size() - 1;
}

/// Points in ascending order of work, those measured again that make no line a kernel can have.
Status settle(AnyOperator& op, KernelPace* pace, std::vector<Example>* examples, Stream& stream,
              const PaceOptions& options) {
  constexpr int kTries = 2;
  std::vector<size_t> order(pace->points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return pace->points[a].work < pace->points[b].work; });
  std::vector<PacePoint> points;
  for (const size_t i : order) points.push_back(pace->points[i]);
  RIDGE_TRY(settle_points(&points, kTries, [&](size_t i) -> Result<double> {
    RIDGE_ASSIGN(const Effort effort, effort_now(options));
    if (!effort.far) return points[i].us;  // in a hurry
    return least_us(op, (*examples)[order[i]], stream, effort.seconds);
  }));
  pace->points = std::move(points);
  return {};
}

}  // namespace

Result<std::vector<KernelPace>> measure_pace(Device& device, const std::vector<AnyOperator*>& operators,
                                             const PaceOptions& options) {
  std::vector<KernelPace> out;
  RIDGE_ASSIGN(const auto stream, device.create_stream());
  Others others;
  others.loops = probe_loops_of(device.target().isa);
  RIDGE_ASSIGN(others.memory, Buffer::allocate(kOtherBytes, Pages::kHuge));
  std::memset(others.memory.data(), 0, static_cast<size_t>(kOtherBytes));
  for (size_t i = 0; i < operators.size(); ++i) {
    AnyOperator& op = *operators[i];
    if (op.pace_cases() == 0) continue;
    for (const Formats& formats : formats_for(op)) {
      std::vector<PacedExamples> paced;
      for (size_t c = 0; c < op.pace_cases(); ++c) {
        RIDGE_ASSIGN(Example e, example_of(op, device.target(), c, formats));
        if (e.call.op == nullptr) continue;
        RIDGE_ASSIGN(const Effort effort, effort_now(options));
        RIDGE_ASSIGN(const double us, least_us(op, e, *stream, effort.seconds));
        const size_t at = pace_of(&out, e);
        KernelPace& pace = out[at];
        pace.points.push_back({pace_work(op.cost(e.selection, e.call.args.get())), us});
        if (pace.points.size() == 1) {
          RIDGE_ASSIGN(pace.start_us, start_of(op, e, *stream, &others, us, effort.starts));
        } else if (effort.far) {
          RIDGE_ASSIGN(pace.exposed, exposed_of(op, e, *stream, &others, us));
        }
        if (pace.points.size() == 1) paced.push_back({at, {}});
        for (PacedExamples& p : paced)
          if (p.pace == at) p.examples.push_back(std::move(e));
      }
      for (PacedExamples& p : paced) RIDGE_TRY(settle(op, &out[p.pace], &p.examples, *stream, options));
    }
    if (options.progress)
      options.progress(static_cast<double>(i + 1) / static_cast<double>(operators.size()));
  }
  return out;
}

}  // namespace ridge
