#include "plan/step_plan.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "account/ticks.h"
#include "base/checked.h"
#include "base/stop.h"

namespace ridge {

namespace {

// Before finish() a tensor's address is this base, plus its region's index times the stride: no such
// user-space address exists on x86-64 or AArch64, and no region reaches the next one.
constexpr uintptr_t kVirtualBase = uintptr_t{1} << 62;
constexpr uintptr_t kVirtualStride = uintptr_t{1} << 44;
constexpr int64_t kRegionAlignment = 64;

template <class Visit>
void for_each_operand(AnyCall& call, const Visit& visit) {
  const auto& infos = call.op->operands();
  for (size_t i = 0; i < infos.size(); ++i) {
    Tensor& t = call.op->operand(call.args.get(), static_cast<int>(i));
    if (t) visit(t, infos[i]);
  }
}

/// Views into one region count as that region.
bool same_memory(const void* a, const void* b) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x == y || (x >= kVirtualBase && y >= kVirtualBase &&
                    (x - kVirtualBase) / kVirtualStride == (y - kVirtualBase) / kVirtualStride);
}

bool uses(AnyCall& call, const void* address, bool reading) {
  bool found = false;
  for_each_operand(call, [&](Tensor& t, const OperandInfo& info) {
    found |= same_memory(t.data, address) && (!reading || info.role != Role::kOut);
  });
  return found;
}

}  // namespace

Tensor StepPlan::reserve(DType dtype, const Shape& shape, Kind kind) {
  const uintptr_t address = kVirtualBase + kVirtualStride * regions_.size();
  Tensor t(reinterpret_cast<void*>(address), dtype, shape);
  regions_.push_back({round_up(t.bytes(), kRegionAlignment), kind});
  return t;
}
Tensor StepPlan::activation(DType dtype, const Shape& shape) {
  return reserve(dtype, shape, Kind::kActivation);
}
Tensor StepPlan::input(const std::string& name, DType dtype, const Shape& shape) {
  named_.emplace_back(name, reserve(dtype, shape, Kind::kInput));
  return named_.back().second;
}
Tensor StepPlan::output(const std::string& name, DType dtype, const Shape& shape, Fetch fetch) {
  named_.emplace_back(name,
                      reserve(dtype, shape, fetch == Fetch::kAlways ? Kind::kOutput : Kind::kAskedOutput));
  return named_.back().second;
}
const int64_t* StepPlan::counter(const std::string& name) {
  for (auto& [known, value] : counters_)
    if (known == name) return &value;
  counters_.emplace_back(name, 0);
  return &counters_.back().second;
}

std::shared_ptr<const std::vector<QueryChunk>> StepPlan::chunks(const std::string& name) {
  for (auto& [known, chunks] : chunks_)
    if (known == name) return chunks;
  chunks_.emplace_back(name, std::make_shared<std::vector<QueryChunk>>());
  return chunks_.back().second;
}

StepPlan::Region* StepPlan::region_of(const void* address, int64_t* within) {
  const auto a = reinterpret_cast<uintptr_t>(address);
  if (a < kVirtualBase) return nullptr;
  const uintptr_t index = (a - kVirtualBase) / kVirtualStride;
  if (index >= regions_.size()) return nullptr;
  *within = static_cast<int64_t>((a - kVirtualBase) % kVirtualStride);
  return &regions_[index];
}

/// The cast that follows the sequence is offered first: an operator takes it along or returns nothing for it.
bool StepPlan::try_fuse(AnyOperator& fused, size_t at) {
  std::vector<const char*> names = fused.replaces();
  names.push_back("cast");
  if (try_fuse(fused, names, at)) return true;
  names.pop_back();
  return try_fuse(fused, names, at);
}

bool StepPlan::try_fuse(AnyOperator& fused, const std::vector<const char*>& names, size_t at) {
  if (at + names.size() > calls_.size()) return false;
  std::vector<const AnyCall*> sequence;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::string_view(calls_[at + i].call.op->name()) != names[i]) return false;
    sequence.push_back(&calls_[at + i].call);
  }
  AnyCall call = fused.fuse(sequence);
  if (call.args == nullptr) return false;
  // A fused call that only the reference would run is no gain.
  const auto selected = fused.select(device_->target(), call.args.get());
  if (!selected.ok() || selected->kernel < 0) return false;
  // What the sequence wrote and the fused call does not must have no other reader.
  for (size_t i = 0; i < names.size(); ++i) {
    bool lost = false;
    for_each_operand(calls_[at + i].call, [&](Tensor& t, const OperandInfo& info) {
      if (info.role == Role::kIn || uses(call, t.data, false)) return;
      int64_t within;
      if (const Region* r = region_of(t.data, &within); r == nullptr || r->persistent()) lost = true;
      for (size_t c = at + names.size(); c < calls_.size(); ++c) lost |= uses(calls_[c].call, t.data, true);
    });
    if (lost) return false;
  }
  const auto begin = calls_.begin() + static_cast<std::ptrdiff_t>(at);
  calls_.erase(begin, begin + static_cast<std::ptrdiff_t>(names.size()));
  calls_.insert(calls_.begin() + static_cast<std::ptrdiff_t>(at), {std::move(call), {}});
  return true;
}

void StepPlan::fuse(const PlanOptions& options) {
  std::vector<AnyOperator*> wanted;
  for (AnyOperator* op : operators())
    if (!op->replaces().empty() && options.fusions.count(op->name()) > 0) wanted.push_back(op);
  // From the front: of two sequences that share a call the earlier one takes it. And again while there was
  // one: a fused call can be a part of another sequence.
  for (bool found = true; found;) {
    found = false;
    for (size_t at = 0; at < calls_.size(); ++at)
      for (AnyOperator* op : wanted) found = try_fuse(*op, at) || found;
  }
}

void StepPlan::measure_lifetimes() {
  for (size_t c = 0; c < calls_.size(); ++c)
    for_each_operand(calls_[c].call, [&](Tensor& t, const OperandInfo&) {
      int64_t within;
      if (Region* r = region_of(t.data, &within))
        r->first = std::min(r->first, c), r->last = std::max(r->last, c);
    });
}

/// Inputs, then outputs, from the arena's start; returns their end.
int64_t StepPlan::place_persistent() {
  int64_t end = 0;
  for (const auto& [kind, kind_end] : {std::pair{Kind::kInput, &input_bytes_},
                                       {Kind::kOutput, &output_end_},
                                       {Kind::kAskedOutput, &asked_end_}}) {
    for (Region& r : regions_)
      if (r.kind == kind) r.offset = end, end += r.bytes;
    *kind_end = end;
  }
  return end;
}

/// Activations first fit by size: large regions first, each at the lowest offset free during its life.
/// Returns the arena's size. On the host large ones share memory with others of their size alone: kernels
/// give thread t the same share of all rows, so that a line stays with one thread whatever is kept in it.
/// Else threads take lines from each other's caches, one at a time where they have no last-level cache in
/// common: add_rms_norm of 512 x 576 then took 330 us, where it takes 55.
int64_t StepPlan::place() {
  constexpr int64_t kLarge = 64 << 10;
  const bool by_size = device_->host_visible();
  int64_t total = place_persistent(), floor = total, size = 0;
  std::vector<Region*> order;
  for (Region& r : regions_)
    if (!r.persistent() && r.first != ~size_t{0}) order.push_back(&r);
  std::stable_sort(order.begin(), order.end(),
                   [](const Region* a, const Region* b) { return a->bytes > b->bytes; });
  std::vector<const Region*> placed;  // sorted by offset
  for (Region* r : order) {
    if (const int64_t own = by_size && r->bytes >= kLarge ? r->bytes : 0; own != size)
      floor = total, size = own;
    int64_t offset = floor;
    for (const Region* p : placed) {
      if (p->last < r->first || r->last < p->first) continue;
      if (offset + r->bytes <= p->offset) break;
      offset = std::max(offset, p->offset + p->bytes);
    }
    r->offset = offset;
    total = std::max(total, offset + r->bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), r,
                                   [](const Region* a, const Region* b) { return a->offset < b->offset; }),
                  r);
  }
  return total;
}

void StepPlan::rebase(Tensor& t) {
  int64_t within;
  if (const Region* r = region_of(t.data, &within)) t.data = arena_.begin() + r->offset + within;
}

Status StepPlan::finish(const PlanOptions& options) {
  static std::atomic<uint64_t> plans{0};
  id_ = ++plans;
  fuse(options);
  measure_lifetimes();
  RIDGE_ASSIGN(arena_, device_->allocate(place()));
  {
    const std::vector<std::byte> zeros(static_cast<size_t>(arena_.bytes()));
    RIDGE_TRY(device_->upload(arena_.data(), zeros.data(), arena_.bytes()));
  }
  if (!device_->host_visible()) {
    RIDGE_ASSIGN(staging_, device_->allocate_staging(2 * asked_end_));
    std::memset(staging_.data(), 0, static_cast<size_t>(staging_.bytes()));
  }
  graphs_ = options.graphs;
  for (auto& [name, t] : named_) rebase(t);
  int64_t workspace = 0;
  for (auto& [call, selection, launches] : calls_) {
    for_each_operand(call, [&](Tensor& t, const OperandInfo&) { rebase(t); });
    RIDGE_TRY(call.op->check(call.args.get()).within(call.label));
    auto selected = call.op->select(device_->target(), call.args.get());
    if (!selected.ok()) return selected.status().within(call.label);
    selection = selected.take();
    workspace = std::max(workspace, selection.workspace_bytes);
  }
  RIDGE_ASSIGN(workspace_, device_->allocate(workspace));
  return {};
}

Tensor StepPlan::find(const std::string& name) const {
  for (const auto& [known, t] : named_)
    if (known == name) return t;
  std::fprintf(stderr, "ridge: the step plan has no tensor named '%s'\n", name.c_str());
  std::abort();
}

Tensor StepPlan::host(const std::string& name, int slot) const {
  Tensor t = find(name);
  if (staging_.data() != nullptr)
    t.data = staging_.begin() + slot * asked_end_ + (t.as<std::byte>() - arena_.begin());
  return t;
}

bool StepPlan::has(const std::string& name) const {
  return std::any_of(named_.begin(), named_.end(), [&](const auto& n) { return n.first == name; });
}

void StepPlan::set_counter(const std::string& name, int64_t v) {
  for (auto& [known, value] : counters_)
    if (known == name) value = v;
}

void StepPlan::set_chunks(const std::string& name, std::vector<QueryChunk> value) {
  for (auto& [known, chunks] : chunks_)
    if (known == name) *chunks = std::move(value);
}

Status StepPlan::upload(Stream& stream) const {
  if (staging_.data() == nullptr || input_bytes_ == 0) return {};
  return stream.upload(arena_.data(), staging_.begin() + slot_ * asked_end_, input_bytes_).within("inputs");
}
Status StepPlan::download(Stream& stream, bool all) const {
  const int64_t end = all ? asked_end_ : output_end_;
  if (staging_.data() == nullptr || end == input_bytes_) return {};
  return stream
      .download(staging_.begin() + slot_ * asked_end_ + input_bytes_, arena_.begin() + input_bytes_,
                end - input_bytes_)
      .within("outputs");
}

Status StepPlan::run(Stream& stream, std::vector<CallTime>* times, const std::function<void(size_t)>& after) {
  stream.set_workspace(workspace_.data(), workspace_.bytes());
  stamped_ = times != nullptr && !after && stream.has_stamps();
  if (stamped_) RIDGE_TRY(stream.prepare_stamps(static_cast<int64_t>(calls_.size()) + 1));
  // The first run is call by call: what kernels set up once must not happen while calls are recorded.
  if (graphs_ && !after && stream.records_graphs() && runs_ > 0)
    return replay(stream, stamped_ ? &stamped_graph_ : &graph_, stamped_);
  RIDGE_TRY(stamped_ ? run_stamped(stream) : run_calls(stream, times, after));
  ++runs_;
  return {};
}

Status StepPlan::replay(Stream& stream, std::unique_ptr<Graph>* graph, bool stamped) {
  if (*graph == nullptr) {
    RIDGE_TRY(stream.begin_recording());
    const Status queued = stamped ? run_stamped(stream) : run_calls(stream, nullptr, nullptr);
    auto recorded = stream.end_recording();  // also after an error: the stream must not go on recording
    RIDGE_TRY(queued);
    if (!recorded.ok()) return recorded.status();
    *graph = recorded.take();
  }
  return stream.launch(**graph);
}

Status StepPlan::run_call(Stream& stream, size_t index) {
  PlannedCall& planned = calls_[index];
  const AnyCall& call = planned.call;
  const bool first = runs_ == 0;
  if (first) planned.launches.clear(), stream.note_launches(&planned.launches);
  stream.open_call(call.op->name(), call.label);  // as the trace names it
  const Status done = call.op->run(planned.selection, stream, call.args.get());
  stream.close_call();
  if (first) stream.note_launches(nullptr);
  return done.ok() ? done : done.within(call.op->name()).within(call.label);
}

Status StepPlan::run_stamped(Stream& stream) {
  for (size_t c = 0; c < calls_.size(); ++c) {
    stream.stamp_next(static_cast<int64_t>(c));
    RIDGE_TRY(run_call(stream, c));
  }
  return stream.stamp_now(static_cast<int64_t>(calls_.size()));
}

Result<int64_t> StepPlan::read_times(Stream& stream, int64_t end_ns, std::vector<CallTime>* times) const {
  if (!stamped_) {
    int64_t before = 0;
    for (CallTime& t : *times) t.meter = stream.meter(before, t.rounds), before = t.rounds;
    return int64_t{0};
  }
  std::vector<int64_t> stamps;
  RIDGE_TRY(stream.read_stamps(&stamps));
  const size_t calls = calls_.size();
  for (size_t c = 0; c < calls; ++c) (*times)[c] = {end_ns - (stamps[calls] - stamps[c + 1]), 0, {}};
  return end_ns - (stamps[calls] - stamps[0]);
}

Result<Buffer> StepPlan::read(const Tensor& t) const {
  int64_t bytes = t.bytes();
  if (!t.is_dense() && t.elements() > 0) {
    int64_t last = 0;
    for (int d = 0; d < t.rank(); ++d) last += (t.dim(d) - 1) * t.stride(d);
    bytes = (last + 1) * dtype_block_bytes(t.dtype);
  }
  RIDGE_ASSIGN(Buffer copy, Buffer::allocate(bytes));
  RIDGE_TRY(device_->download(copy.data(), t.data, bytes));
  return copy;
}

Status StepPlan::run_calls(Stream& stream, std::vector<CallTime>* times,
                           const std::function<void(size_t)>& after) {
  if (times != nullptr) stream.set_metering(true);
  const Instant began = times != nullptr ? Instant::now() : Instant{};
  Status failed;
  int64_t rounds = 0;
  for (size_t c = 0; c < calls_.size() && failed.ok(); ++c) {
    failed = check_stop();
    if (!failed.ok()) break;
    failed = run_call(stream, c);
    if (after && failed.ok()) {
      failed = stream.synchronize().within(calls_[c].call.label);
      after(c);
    }
    if (times == nullptr) continue;
    // A call ends with its last round, whose end is noted already.
    const int64_t before = std::exchange(rounds, stream.metered_rounds());
    (*times)[c] = {rounds > before ? stream.metered_until() : ticks(), rounds, {}};
  }
  if (times != nullptr) {
    stream.set_metering(false);
    const double ns = ns_per_tick(began, Instant::now());
    for (CallTime& t : *times)
      t.end_ns = began.ns + static_cast<int64_t>(static_cast<double>(t.end_ns - began.tick) * ns);
  }
  return failed.ok() ? check_stop() : failed;  // the last call may have ended early
}

}  // namespace ridge
