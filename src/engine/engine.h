#pragma once
// InferenceEngine: sequences in, tokens out. One step() runs a ragged batch: a token of every decoding
// sequence and, within a budget, chunks of prompts that are not finished.

#include <map>
#include <optional>
#include <utility>

#include "engine/kv_pool.h"
#include "engine/observer.h"

namespace ridge {

struct SamplingParams {
  float temperature = 0;  // 0: the largest logit, lowest id on ties
  int64_t top_k = 0;      // 0: off
  float top_p = 1, min_p = 0;
  float repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  bool penalised() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

struct EngineOptions {
  KvOptions kv;  // pages 0: enough for max_sequences of context tokens; context 0: the model's
  int64_t max_sequences = 1;
  int64_t prefill_tokens = 512;  // prompt tokens a step, over all sequences
  StepFormats formats;
  PlanOptions plan;
  // Where the host does not see the device's memory: copy the logits of each step to it.
  bool keep_logits = false;
  // There too: a step of decodes alone starts from the tokens that the device sampled, before the host has
  // seen them.
  bool look_ahead = true;
};

struct Request {
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 0;
  SamplingParams sampling;
  std::vector<int32_t> end_ids;  // any of them ends the answer
  int64_t arrival_ns = 0;        // on now_ns()'s clock; 0: at submit
};

struct PlanBytes {
  int64_t activations = 0, workspaces = 0, staging = 0;
  int64_t graphs = 0;  // of recorded steps; outside of what the device allocates for others
  int64_t stream = 0;  // what the stream keeps, and the sampled ids
};
/// Pages that sequences hold, and the tokens for which those have room behind the last.
struct KvUse {
  int64_t pages = 0, tail_tokens = 0;
  std::vector<int64_t> lengths;  // tokens of each sequence
};

enum class Finish : uint8_t { kNone, kEnd, kLength, kError };

struct TokenEvent {
  int64_t request = 0;
  int32_t token = -1;
  float logprob = 0;  // of the token under the model's own distribution, before temperature and filters
  Finish finish = Finish::kNone;
  Status error;  // with kError: why (this request alone has ended)
};

class InferenceEngine {
 public:
  /// Errors: kInvalidArgument naming option and value; kResourceExhausted with the size that did not fit.
  static Result<std::unique_ptr<InferenceEngine>> create(Device& device, const Model& model,
                                                         const EngineOptions& options);
  ~InferenceEngine();
  /// The options with what they leave open filled in. Errors: kInvalidArgument naming option and value.
  static Result<EngineOptions> checked(const DecoderConfig& model, const EngineOptions& options);

  /// Takes a request in. kInvalidArgument: an empty prompt, an id outside the vocabulary, a prompt that fills
  /// the context (both numbers are named), parameters out of range. Nothing is cut and nothing runs before
  /// step().
  Result<int64_t> submit(Request request);
  /// One batch. Empty when idle. After an error or an exception, a kernel, the device or memory failed, only
  /// reset() may come next; but for kCancelled (a stop was requested): then the step did not happen, and the
  /// next one is it again.
  Result<std::vector<TokenEvent>> step();
  /// Ends every request, without events, and lets go of plans and observer, whatever a failed step left
  /// behind: the next request finds the engine as new. Allocates nothing.
  void reset();
  void cancel(int64_t request);
  bool idle() const { return sequences_.empty(); }

  void set_observer(StepObserver* observer) { observer_ = observer; }
  const KvPool& kv() const { return pool_; }
  const EngineOptions& options() const { return options_; }
  /// Requests that ended because their logits were not numbers, since the engine was made.
  int64_t corrupted_requests() const { return corrupted_requests_; }
  /// Logits of the last step, row i belonging to its i-th event (events of failed requests come after those
  /// with logits); valid until the next step. [rows, vocab] f32; absent after a step without logits, and
  /// without EngineOptions::keep_logits where the host does not see the device's memory.
  Tensor last_logits() const { return last_logits_; }
  /// Bytes of plans held now: activations and workspace; apart, with the host's staging.
  int64_t plan_bytes() const;
  PlanBytes plan_bytes_by_kind() const;
  /// The moment so far when most pages were taken.
  KvUse kv_peak() const { return kv_peak_; }

 private:
  struct Sequence {
    int64_t id = 0;
    std::vector<int32_t> tokens;  // prompt and answer
    int64_t prompt = 0, cached = 0, limit = 0;
    SamplingParams sampling;
    std::vector<int32_t> end_ids;
    std::vector<int32_t> pages;
    int64_t arrival_ns = 0, last_ns = 0;  // last_ns: end of its last step, 0 before the first
    int64_t fed_row = -1;  // its next token is still on the device, sampled in this row of the step in flight
    bool prefilling() const { return cached < prompt; }
    int64_t known() const { return static_cast<int64_t>(tokens.size()) + (fed_row >= 0 ? 1 : 0); }
  };
  struct Chunk {
    Sequence* sequence;
    int64_t tokens;
  };
  struct Batch {
    std::vector<Chunk> decodes, prefills;
    BatchShape shape;                // with rows of padding after the decodes, where graphs are recorded
    std::vector<Sequence*> sampled;  // row of the logits -> sequence; null once it is gone
    int64_t tokens() const { return static_cast<int64_t>(decodes.size()) + shape.prefill_tokens; }
    Phase phase() const {
      return prefills.empty() ? Phase::kDecode : decodes.empty() ? Phase::kPrefill : Phase::kMixed;
    }
  };
  /// A step that was queued and not yet waited for.
  struct Launched {
    Batch batch;
    StepPlan* plan = nullptr;
    StepFacts facts;
    int slot = 0;       // of events_ and of ids_staging_
    int plan_slot = 0;  // of the plan's staging
  };
  InferenceEngine(Device& device, const Model& model, const EngineOptions& options)
      : device_(&device), model_(&model), options_(options) {}
  Status check_request(const Request& request) const;
  Batch schedule(std::vector<TokenEvent>* events);
  Status grow(Sequence& sequence, int64_t tokens);
  bool restart_youngest();
  void pad(Batch* batch) const;
  Result<StepPlan*> plan_for(const Batch& batch);
  Result<std::unique_ptr<StepPlan>> write_plan(const BatchShape& shape, int64_t history, int64_t biases);
  Result<Launched> launch(Batch batch, int64_t begin_ns);
  bool may_look_ahead(const Launched& current) const;
  Status finish(Launched& step, std::vector<TokenEvent>* events);
  void fill_indices(StepPlan& plan, const Batch& batch);
  void fill_group(StepPlan& plan, const std::vector<Chunk>& group, bool prefill);
  void fill_sampling(StepPlan& plan, const Batch& batch);
  void count(StepPlan& plan, const Batch& batch);
  void collect(const Launched& step, std::vector<TokenEvent>* events);
  void observe(Launched& step);
  size_t where_it_samples(const StepPlan& plan);
  void observe_stages(const Batch& batch, const StepFacts& facts, const StepPlan& plan);
  void retire(int64_t id);

  Device* device_;
  const Model* model_;
  EngineOptions options_;
  KvPool pool_;
  std::unique_ptr<Stream> stream_;
  // Where the host does not see the device's memory: the ids that the last step sampled, from which the next
  // starts, and where they come to the host.
  Buffer last_ids_, ids_staging_;  // [rows] and [2, rows] i32
  std::unique_ptr<Event> events_[2];
  std::optional<Launched> ahead_;
  int64_t launches_ = 0, last_end_ns_ = 0;
  std::map<int64_t, Sequence> sequences_;  // by id: first come, first served
  int64_t next_id_ = 1;
  struct PlanKey {
    BatchShape shape;
    int64_t history = 0, biases = 0;
    auto operator<=>(const PlanKey&) const = default;
  };
  struct CachedPlan {
    PlanKey key;
    std::unique_ptr<StepPlan> plan;
    int64_t used = 0;
  };
  std::vector<CachedPlan> plans_;
  int64_t steps_ = 0, corrupted_requests_ = 0;
  KvUse kv_peak_;
  std::vector<TokenEvent> owed_;  // of requests that ended in a step that was cancelled
  StepObserver* observer_ = nullptr;
  /// Where a plan samples: looked up once, for each step of a decode runs the same hundreds of calls.
  struct SamplingCall {
    uint64_t plan = 0;
    size_t call = kNowhere;
  };
  static constexpr size_t kNowhere = ~size_t{0};
  SamplingCall sampling_call_;
  Tensor last_logits_;
};

}  // namespace ridge
