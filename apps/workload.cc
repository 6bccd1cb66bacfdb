#include "workload.h"

#include "lab/workload.h"
#include "verbs.h"

namespace ridge::app {

Result<std::vector<int32_t>> workload_prompt(const Session& session, const WorkloadOptions& o) {
  if (!o.prompt.empty()) return session.encode_text(o.prompt);
  if (o.prompt_tokens < 1) return invalid_argument("--prompt-tokens is ", o.prompt_tokens, ": use 1 or more");
  if (o.prompt_tokens > limits::kModelContext)
    return invalid_argument("--prompt-tokens is ", o.prompt_tokens, ", the limit is ", limits::kModelContext);
  const Tokenizer& t = session.tokenizer();
  std::vector<int32_t> ids;
  Random random(o.seed);
  while (static_cast<int64_t>(ids.size()) < o.prompt_tokens) {
    const auto id = static_cast<int32_t>(random.below(t.vocab()));
    if (t.type(id) == TokenType::kNormal) ids.push_back(id);
  }
  return ids;
}

Status run_workload(Session& session, const std::vector<int32_t>& prompt, const WorkloadOptions& o) {
  if (o.batch < 1) return invalid_argument("--batch is ", o.batch, ": use 1 or more");
  for (int64_t b = 0; b < o.batch; ++b) {
    Request r;
    r.prompt = prompt;
    r.max_new_tokens = o.output_tokens;
    RIDGE_TRY(session.engine().submit(std::move(r)).status());
  }
  while (!session.engine().idle()) {
    if (interrupted()) return interruption();
    RIDGE_ASSIGN(const auto events, session.engine().step());
    for (const TokenEvent& e : events)
      if (e.finish == Finish::kError) return e.error;
  }
  return {};
}

Workload describe_workload(Session& session, const std::vector<int32_t>& prompt, const WorkloadOptions& o) {
  Workload w = workload_of(session, session.engine().options(), session.device().describe());
  w.prompt_tokens = static_cast<int64_t>(prompt.size()), w.output_tokens = o.output_tokens, w.batch = o.batch;
  return w;
}

}  // namespace ridge::app
