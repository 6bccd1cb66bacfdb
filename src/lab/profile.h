#pragma once
// Profile: every operator call of a workload, priced by its own Cost and judged against the measured machine.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "account/verdict.h"
#include "engine/observer.h"
#include "engine/session.h"
#include "lab/far_reader.h"
#include "lab/price_book.h"
#include "lab/request_times.h"

namespace ridge {

/// What was run; every figure that is printed or stored carries it.
struct Workload {
  std::string model, weight_format, kv_format, activation_format, device, sampling = "greedy", fusions;
  int64_t prompt_tokens = 0, output_tokens = 0, batch = 1, prefix_hit_tokens = 0, prefill_chunk = 0;
  bool constrained = false;
};

/// One operator at one shape in one phase.
struct ProfileRow {
  std::string op, kernel, shape, formats;
  std::string fixed_shape;         // what of the shape stays from step to step
  std::vector<int64_t> pace_dims;  // of the operator: which of the measured paces is its kernel's
  bool varies = false;             // a call's cost changes from step to step: so do its rows
  int64_t calls = 0;
  double time_us = 0;
  Cost cost;  // of all calls
  Occasion occasion;
  bool beat_the_reading = false;  // of memory: its own rate stands for it, up to the machine file's
  Verdict verdict;
  std::vector<KernelLaunch> launches = {};  // of one call; empty on devices that tell none
};

/// What memory gave while a phase ran, beside what the machine file says of as many bytes between two uses.
struct Drift {
  int64_t readings = 0;                  // 0: none were taken, and the machine file's figure was used
  int64_t disturbed = 0;                 // others, left out: a thread lost its core meanwhile
  int64_t bytes = 0;                     // that a step reads of weights, scales and KV
  double now = 0, file = 0;              // bytes a second: median of the readings; the machine file's
  double flops_now = 0, flops_file = 0;  // multiply-adds in f32, operations a second, likewise
  double near_now = 0, near_file = 0;    // reads of a core's own cache, bytes a second, likewise
  /// What the processor computes now, of what it did when it was probed: less at a lower clock, or where
  /// something else computes on the same core. 1 where it was not read.
  double arithmetic() const { return flops_now > 0 && flops_file > 0 ? flops_now / flops_file : 1; }
  /// Likewise of the kernels on near data, which load and unpack beside computing: the less of that and of
  /// reads.
  double pace() const {
    return near_now > 0 && near_file > 0 ? std::min(arithmetic(), near_now / near_file) : arithmetic();
  }
};

struct ProfilePhase {
  Phase phase = Phase::kPrefill;
  int64_t steps = 0, tokens = 0;  // tokens: prompt tokens, or tokens decoded
  double wall_us = 0;             // of the steps
  double between_us = 0;  // from the step before, of whatever phase, to each: answers handed over, recording
  std::vector<ProfileRow> rows;  // in order of first call; the last is "host", what no operator took
  Drift drift;
  double loss_us(Loss loss) const;
  double limit_us() const;
  Bound bound() const;  // which kind of limit most of limit_us() is
};

/// One call of one step, for the trace.
struct CallSlice {
  int64_t begin_ns = 0, end_ns = 0;
  std::shared_ptr<const CallName> name;  // slices of one call share it, and while its counts stay, the cost
  std::shared_ptr<const Cost> cost;
};
struct StepSlice {
  Phase phase = Phase::kPrefill;
  int64_t begin_ns = 0, end_ns = 0, tokens = 0;
  std::vector<CallSlice> calls;
};

struct Profile {
  Workload workload;
  Machine machine;
  int threads = 1;
  std::vector<ProfilePhase> phases;  // those that occurred: prefill, decode, mixed
  std::vector<StageSpan> stages;
  std::vector<StepSlice> steps;
  double ttft_us = 0, tpot_us = 0;  // of the first request, from its arrival
  TokenTimes tpot;                  // of all requests
  int64_t clock_errors = 0;         // spans of all requests that end before they begin
  std::string date, commit, command;
  int runs = 1;            // observed; this is the shortest
  double wall_us() const;  // of the steps of all phases
};

/// Collects steps; attach to an engine, run, then finish(). After a step it notes times and the args of one
/// call of each group whose costs change, outside of the timed calls; all else is worked out in finish().
class Profiler final : public StepObserver {
 public:
  explicit Profiler(bool keep_slices = true) : keep_slices_(keep_slices) {}
  /// Reads memory with `reader` between steps, every few of them, and judges by what it gives. The account's
  /// clock stands still meanwhile: no time of the profile holds any of it.
  void read_far(FarReader reader) { far_ = std::move(reader); }
  void on_step(const StepFacts& facts, const StepPlan& plan) override;
  void on_stage(int64_t request, Stage stage, int64_t begin_ns, int64_t end_ns) override;
  /// The prompt of the requests that follow was made in this time: their stage before the queue.
  void tokenized(int64_t begin_ns, int64_t end_ns) {
    tokenize_begin_ns_ = begin_ns, tokenize_end_ns_ = end_ns;
  }
  /// Judges the rows against `machine` at `threads`.
  Profile finish(const Machine& machine, int threads);
  void clear();

 private:
  struct Key {
    std::string op, kernel, shape, formats;
    auto operator<=>(const Key&) const = default;
  };
  struct Collected {
    ProfilePhase phase;
    std::map<Key, size_t> index;
  };
  struct Price {
    size_t row = 0;
    std::shared_ptr<const Cost> cost;
  };
  /// A plan, in one phase.
  struct Planned {
    PriceBook book;
    std::vector<AnyCall> varying;  // the book's
    std::vector<Price> calls;      // as in the plan's first step: those that do not vary stand for all steps
    int64_t steps = 0;
    std::vector<FarReading> readings;
    int64_t disturbed = 0;  // readings that were left out
    explicit Planned(const StepPlan& plan) : book(plan) {}
  };
  /// What is kept of a CallTime: a third of it, for it is written to new memory between two steps.
  struct NotedTime {
    int64_t end_ns = 0;
    float wait_ns = 0, barrier_ns = 0, imbalance_ns = 0, occupancy_ns = 0;
  };
  struct NotedStep {
    Planned* planned = nullptr;
    Phase phase = Phase::kPrefill;
    int64_t tokens = 0, begin_ns = 0, calls_begin_ns = 0, end_ns = 0, paused_ns = 0;
    std::vector<NotedTime> times;                     // by call
    std::vector<std::shared_ptr<const void>> varied;  // args as the book's varying() had them
  };
  struct Pause {
    int64_t end_ns = 0, all_ns = 0;  // of this one and those before it
  };
  size_t row(Collected& c, Key key, const AnyCall* call);  // its index, made when it is new
  Price price(Collected& c, Planned& planned, const AnyCall& call, size_t index, const void* args);
  void add_up();
  void add(const NotedStep& note);
  void pause_to_read(Planned& planned, const StepPlan& plan);
  int64_t account_ns(int64_t ns) const;
  void take_readings(ProfilePhase* phase, const ThreadCeilings& ceilings) const;
  bool keep_slices_;
  std::map<Phase, Collected> phases_;
  std::map<std::pair<Phase, uint64_t>, Planned> plans_;  // by the plan's id; the phase's rows are in its book
  std::vector<StageSpan> stages_;
  std::vector<StepSlice> steps_;
  int64_t tokenize_begin_ns_ = 0, tokenize_end_ns_ = 0;
  FarReader far_;
  std::vector<Pause> pauses_;
  int64_t last_end_ns_ = 0;       // of the last step added up, on the account's clock
  std::vector<NotedStep> noted_;  // not yet added up
};

/// What is shown in one line: a row, or the sum of several.
struct ShownRow {
  ProfileRow row;                       // a sum's shape names the first and the last: "1 after 12..75"
  std::vector<const ProfileRow*> sums;  // rows of a sum, in order of first call; else empty
};
/// The rows by falling time, the host's where its time puts it. More than four that differ in the lengths of
/// one call alone, as a decode has for every token, come as their sum, unless `each` is asked for.
std::vector<ShownRow> shown_rows(const ProfilePhase& phase, bool each = false);

/// Machine-readable and human-readable forms. JSON: docs/json.md.
std::string profile_json(const Profile& profile);
/// "memory read at 90 MB, 2 threads: 78.1 GB/s between the steps (median of 18), 110.2 in the machine file";
/// "" where none was taken.
std::string drift_text(const Drift& drift, int threads);
/// `each_row`: rows that differ in lengths alone one by one.
std::string profile_text(const Profile& profile, bool color, bool each_row = false);

}  // namespace ridge
