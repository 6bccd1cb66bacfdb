#include "lab/workload.h"

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/random.h"
#include "base/shortest.h"
#include "engine/option_names.h"

namespace ridge {

const char* fixed_text() {
  return "Rivers carry more than water. In a year even a small one moves tons of sand and clay from the "
         "hills "
         "down to the plain, and when it floods it leaves them on the fields. Farmers learned early to wait "
         "for "
         "that gift: they counted the days between the first swallow and the first flood, cut the numbers "
         "into "
         "bone, and sowed when the water had gone. A list of prices from one such town names barley, oil, "
         "wool "
         "and copper; next to copper somebody wrote, in another hand, that it was too dear.\n";
}

/// The types of the matrices.
static std::string weight_types(const GgufFile& file) {
  std::set<std::string> types;
  for (const GgufTensor& t : file.tensors())
    if (t.shape.rank() == 2) types.insert(t.type->name);
  std::string out;
  for (const std::string& t : types) out += text(out.empty() ? "" : " + ", t);
  return out;
}

Workload workload_of(const Session& session, const EngineOptions& options, const std::string& device) {
  Workload w;
  const std::string& path = session.file().path();
  w.model = path.substr(path.rfind('/') + 1);
  w.weight_format = weight_types(session.file());
  w.kv_format = kv_name(options.kv.k_type);
  w.activation_format = activation_format_name(options.formats.activations);
  w.device = device;
  for (const std::string& f : options.plan.fusions) w.fusions += text(w.fusions.empty() ? "" : ", ", f);
  w.batch = options.max_sequences, w.prefill_chunk = options.prefill_tokens;
  return w;
}

std::string sampling_text(const SamplingParams& s) {
  std::string out;
  const auto add = [&](const char* name, auto value, auto off) {
    if (value == off) return;
    out += text(out.empty() ? "" : ", ", name, " ");
    if constexpr (std::is_same_v<decltype(value), float>)
      out += text(shortest(value));
    else
      out += text(value);
  };
  add("repetition penalty", s.repetition_penalty, 1.0f), add("presence penalty", s.presence_penalty, 0.0f);
  add("frequency penalty", s.frequency_penalty, 0.0f);
  if (!s.logit_bias.empty()) add("biased tokens", s.logit_bias.size(), size_t{0});
  if (s.temperature == 0) return out.empty() ? "greedy" : out + ", greedy";
  add("temperature", s.temperature, 0.0f), add("top-k", s.top_k, int64_t{0}), add("top-p", s.top_p, 1.0f);
  add("min-p", s.min_p, 0.0f);
  return out + text(", seed ", s.seed);
}

int64_t tokens_of(const WorkloadOptions& o) {
  const auto sound = [](int64_t v) { return v >= 1 && v <= limits::kModelContext; };
  return o.prompt.empty() && sound(o.prompt_tokens) && sound(o.output_tokens)
             ? o.prompt_tokens + o.output_tokens
             : 0;
}

/// Every number against its range before anything is added to it.
static Status check_workload(const Session& session, const WorkloadOptions& o, int64_t prompt_tokens) {
  const int64_t context = session.engine().options().kv.context;
  const auto in = [&](const char* option, int64_t v, int64_t most) {
    if (v >= 1 && v <= most) return Status();
    return invalid_argument(option, " is ", v, ": use 1 to ", most);
  };
  RIDGE_TRY(in("batch", o.batch, limits::kBatchSequences));
  // Each leaves a token of the context to the other; both together are looked at below.
  if (o.prompt.empty()) RIDGE_TRY(in("prompt_tokens", prompt_tokens, std::max<int64_t>(1, context - 1)));
  RIDGE_TRY(in("output_tokens", o.output_tokens, std::max<int64_t>(1, context - 1)));
  if (prompt_tokens > context - o.output_tokens)
    return invalid_argument("the prompt has ", prompt_tokens, " tokens and the answer ", o.output_tokens,
                            ", the context holds ", context, ": ask for less",
                            prompt_tokens <= session.model().config().context - o.output_tokens
                                ? ", or raise the context"
                                : "; this model was made for no more");
  return {};
}

Result<std::vector<int32_t>> workload_prompt(const Session& session, const WorkloadOptions& o) {
  if (!o.prompt.empty()) {
    RIDGE_ASSIGN(std::vector<int32_t> ids, session.encode_text(o.prompt));
    RIDGE_TRY(check_workload(session, o, static_cast<int64_t>(ids.size())));
    return ids;
  }
  RIDGE_TRY(check_workload(session, o, o.prompt_tokens));
  const Tokenizer& t = session.tokenizer();
  bool any_normal = false;
  for (int32_t id = 0; id < t.vocab() && !any_normal; ++id) any_normal = t.type(id) == TokenType::kNormal;
  if (!any_normal)
    return invalid_argument("none of the ", t.vocab(),
                            " tokens of the vocabulary is a normal one, of which a random prompt is made: "
                            "give a prompt");
  std::vector<int32_t> ids;
  Random random(o.seed);
  while (static_cast<int64_t>(ids.size()) < o.prompt_tokens) {
    const auto id = static_cast<int32_t>(random.below(t.vocab()));
    if (t.type(id) == TokenType::kNormal) ids.push_back(id);
  }
  return ids;
}

namespace {

/// Requests that leave the engine again, whatever happens to them.
class Submitted {
 public:
  explicit Submitted(InferenceEngine& engine) : engine_(engine) {}
  Submitted(const Submitted&) = delete;
  Submitted& operator=(const Submitted&) = delete;
  ~Submitted() {
    for (const int64_t id : ids_) engine_.cancel(id);
  }
  Status add(Request request) {
    RIDGE_ASSIGN(const int64_t id, engine_.submit(std::move(request)));
    ids_.push_back(id);
    return {};
  }

 private:
  InferenceEngine& engine_;
  std::vector<int64_t> ids_;
};

}  // namespace

/// Submits all requests, and steps until none is left; `after` each step's events, errors aside.
static Status run_requests(InferenceEngine& engine, const std::vector<int32_t>& prompt,
                           const WorkloadOptions& o, const std::function<bool()>& interrupted,
                           const std::function<void(const std::vector<TokenEvent>&)>& after) {
  Submitted submitted(engine);
  for (int64_t b = 0; b < o.batch; ++b) {
    Request r;
    r.prompt = prompt;
    r.max_new_tokens = o.output_tokens, r.arrival_ns = o.arrival_ns;
    RIDGE_TRY(submitted.add(std::move(r)));
  }
  while (!engine.idle()) {
    if (interrupted && interrupted()) return Status(Code::kCancelled, "interrupted");
    RIDGE_ASSIGN(const auto events, engine.step());
    for (const TokenEvent& e : events)
      if (e.finish == Finish::kError) return e.error;
    if (after) after(events);
  }
  return {};
}

Status run_workload(InferenceEngine& engine, const std::vector<int32_t>& prompt, const WorkloadOptions& o,
                    const std::function<bool()>& interrupted) {
  return run_requests(engine, prompt, o, interrupted, nullptr);
}

Result<double> decode_round_us(InferenceEngine& engine, const std::vector<int32_t>& prompt,
                               const WorkloadOptions& o, const std::function<bool()>& interrupted) {
  WorkloadOptions one_more = o;  // the first token is the prompt's
  ++one_more.output_tokens;
  std::set<int64_t> started;
  int64_t begin = 0, end = 0, rounds = 0;
  RIDGE_TRY(run_requests(engine, prompt, one_more, interrupted, [&](const std::vector<TokenEvent>& events) {
    if (begin != 0 && static_cast<int64_t>(events.size()) == o.batch) end = now_ns(), ++rounds;
    for (const TokenEvent& e : events) started.insert(e.request);
    if (begin == 0 && static_cast<int64_t>(started.size()) == o.batch) begin = now_ns();
  }));
  if (rounds == 0)
    return invalid_argument("an answer of ", o.output_tokens, o.output_tokens == 1 ? " token" : " tokens",
                            " leaves no step in which all ", o.batch, " requests decode: ask for more");
  return static_cast<double>(end - begin) / 1e3 / static_cast<double>(rounds);
}

Workload describe_workload(Session& session, const std::vector<int32_t>& prompt, const WorkloadOptions& o) {
  Workload w = workload_of(session, session.engine().options(), session.device().describe());
  w.prompt_tokens = static_cast<int64_t>(prompt.size()), w.output_tokens = o.output_tokens, w.batch = o.batch;
  return w;
}

}  // namespace ridge
