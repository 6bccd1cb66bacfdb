// Requests: submitted, stepped, their events taken; or generated to the end at once.

#include <algorithm>

#include "account/recorder.h"
#include "capi/model.h"

namespace ridge::capi {

Result<Request> request_of(const ridge_model& model, const ridge_request* from) {
  ridge_request r = RIDGE_REQUEST_INIT;
  RIDGE_TRY(read_struct(from, "request", &r));
  if (r.prompt_count > 0) RIDGE_TRY(needed(r.prompt, "request->prompt"));
  if (r.end_count > 0) RIDGE_TRY(needed(r.end_ids, "request->end_ids"));
  Request request;
  if (r.prompt_count > 0) request.prompt.assign(r.prompt, r.prompt + r.prompt_count);
  request.max_new_tokens = r.max_new_tokens;
  if (r.ignore_model_end == 0) request.end_ids = model.session->end_ids();
  for (size_t i = 0; i < r.end_count; ++i) {
    if (r.end_ids[i] < 0 || r.end_ids[i] >= model.info.vocab)
      return invalid_argument("request->end_ids[", i, "] is ", r.end_ids[i], ", the vocabulary has ",
                              model.info.vocab);
    request.end_ids.push_back(r.end_ids[i]);
  }
  if (r.sampling == nullptr) return request;
  ridge_sampling s = RIDGE_SAMPLING_INIT;
  RIDGE_TRY(read_struct(r.sampling, "sampling", &s));
  SamplingParams& p = request.sampling;
  p.temperature = s.temperature, p.top_k = s.top_k, p.min_p = s.min_p, p.seed = s.seed;
  p.presence_penalty = s.presence_penalty, p.frequency_penalty = s.frequency_penalty;
  if (s.top_p != 0) p.top_p = s.top_p;
  if (s.repetition_penalty != 0) p.repetition_penalty = s.repetition_penalty;
  if (s.bias_count > 0) RIDGE_TRY(needed(s.bias_ids, "sampling->bias_ids"));
  if (s.bias_count > 0) RIDGE_TRY(needed(s.bias, "sampling->bias"));
  for (size_t i = 0; i < s.bias_count; ++i) p.logit_bias.emplace_back(s.bias_ids[i], s.bias[i]);
  return request;
}

namespace {

/// To whoever waits for it. Where memory is short nothing has changed.
void hand_over(ridge_model& m, TokenEvent event) {
  const int64_t id = event.request;
  const bool ended = event.finish != Finish::kNone;
  const auto owner = m.generating.find(id);
  (owner != m.generating.end() ? owner->second : m.waiting).push_back(std::move(event));
  if (ended) m.running.erase(id);
}

}  // namespace

void settle(ridge_model& m) {
  if (!m.stepping) return;
  m.session->engine().reset();
  while (!m.running.empty())
    hand_over(m, {*m.running.begin(), -1, 0, Finish::kError,
                  m.failed.ok() ? internal_error("a step of this request was cut short by an exception")
                                : m.failed});
  m.failed = {}, m.stepping = false;
}

Status step(ridge_model& m) {
  settle(m);
  m.stepping = true;
  auto events = m.session->engine().step();
  if (!events.ok()) {
    // A step that was stopped did not happen: the next one is it again.
    if (events.status().code() == Code::kCancelled) {
      m.stepping = false;
      return events.status();
    }
    m.failed = events.status();
    Status status = m.failed;
    settle(m);
    return status;
  }
  for (TokenEvent& e : *events) hand_over(m, std::move(e));
  m.stepping = false;
  return {};
}

namespace {

Result<int64_t> submit(ridge_model& m, Request request) {
  settle(m);
  RIDGE_ASSIGN(const int64_t id, m.session->engine().submit(std::move(request)));
  try {
    m.running.insert(id);
  } catch (...) {
    m.session->engine().cancel(id);
    throw;
  }
  return id;
}

ridge_event event_of(const TokenEvent& e) {
  ridge_event out = RIDGE_EVENT_INIT;
  out.request = e.request, out.token = e.token, out.logprob = e.logprob;
  out.finish = static_cast<int32_t>(e.finish);
  out.status = status_of(e.error.code());
  if (!e.error.ok()) {
    const std::string& why = e.error.message();
    std::memcpy(out.message, why.data(), std::min(why.size(), sizeof out.message - 1));
  }
  return out;
}
static_assert(static_cast<int>(Finish::kEnd) == RIDGE_FINISH_END);
static_assert(static_cast<int>(Finish::kLength) == RIDGE_FINISH_LENGTH);
static_assert(static_cast<int>(Finish::kError) == RIDGE_FINISH_ERROR);

/// One request of ridge_generate, from its submission until nothing of it is left, however that comes.
class Generation {
 public:
  explicit Generation(ridge_model& model) : m_(model), decoder_(model.session->tokenizer()) {}
  ~Generation() {
    if (id_ == 0) return;
    const std::lock_guard lock(m_.mutex);
    if (m_.running.erase(id_) > 0) m_.session->engine().cancel(id_);
    m_.generating.erase(id_);
  }
  Status begin(Request request) {
    begin_ns_ = now_ns();
    const std::lock_guard lock(m_.mutex);
    RIDGE_ASSIGN(id_, submit(m_, std::move(request)));
    m_.generating[id_];
    return {};
  }
  /// To the end; what the callback thinks of each token comes between steps, without the lock.
  Status run(ridge_token_callback callback, void* user) {
    while (answer_.finish == RIDGE_FINISH_NONE) {
      RIDGE_ASSIGN(const TokenEvent event, next());
      if (event.finish == Finish::kError) return event.error;
      if (const int stop = deliver(event, callback, user); stop != 0)
        return {Code::kCancelled, text("the callback returned ", stop, " at token ", answer_.tokens)};
    }
    return {};
  }
  const ridge_answer& answer() const { return answer_; }

 private:
  Result<TokenEvent> next() {
    const std::lock_guard lock(m_.mutex);
    std::deque<TokenEvent>& mine = m_.generating[id_];
    // Another thread's step may have brought it already.
    while (mine.empty()) {
      settle(m_);
      if (!mine.empty()) break;
      if (m_.session->engine().idle()) return internal_error("request ", id_, " ended without an event");
      RIDGE_TRY(step(m_));
    }
    TokenEvent event = std::move(mine.front());
    mine.pop_front();
    return event;
  }
  int deliver(const TokenEvent& event, ridge_token_callback callback, void* user) {
    const double us = static_cast<double>(now_ns() - begin_ns_) / 1e3;
    if (answer_.tokens == 0) answer_.first_token_us = us;
    answer_.total_us = us, answer_.logprob += static_cast<double>(event.logprob), ++answer_.tokens;
    std::string piece = event.finish == Finish::kEnd ? "" : decoder_.push(event.token);
    if (event.finish != Finish::kNone) piece += decoder_.finish();
    const ridge_token token = {sizeof(ridge_token), event.token,  event.logprob,
                               piece.c_str(),       piece.size(), static_cast<int32_t>(event.finish)};
    const int stop = callback != nullptr ? callback(user, &token) : 0;
    if (stop == 0 || event.finish != Finish::kNone) answer_.finish = static_cast<int32_t>(event.finish);
    return event.finish != Finish::kNone ? 0 : stop;
  }

  ridge_model& m_;
  TokenDecoder decoder_;
  int64_t id_ = 0, begin_ns_ = 0;
  ridge_answer answer_ = RIDGE_ANSWER_INIT;
};

}  // namespace
}  // namespace ridge::capi

using namespace ridge;
using namespace ridge::capi;

ridge_status ridge_submit(ridge_model* model, const ridge_request* request, int64_t* id) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    RIDGE_TRY(needed(id, "id"));
    RIDGE_ASSIGN(Request taken, request_of(*model, request));
    const std::lock_guard lock(model->mutex);
    RIDGE_ASSIGN(*id, submit(*model, std::move(taken)));
    return {};
  });
}

ridge_status ridge_step(ridge_model* model, size_t* events_waiting, size_t* requests_running) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    const std::lock_guard lock(model->mutex);
    RIDGE_TRY(step(*model));
    size_t running = model->running.size();
    for (const auto& owned : model->generating) running -= model->running.count(owned.first);
    if (events_waiting != nullptr) *events_waiting = model->waiting.size();
    if (requests_running != nullptr) *requests_running = running;
    return {};
  });
}

ridge_status ridge_next_event(ridge_model* model, ridge_event* event, int* found) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    RIDGE_TRY(needed(found, "found"));
    RIDGE_TRY(check_output(event, "event"));
    const std::lock_guard lock(model->mutex);
    settle(*model);
    *found = model->waiting.empty() ? 0 : 1;
    if (*found == 0) return {};
    write_struct(event_of(model->waiting.front()), event);
    model->waiting.pop_front();
    return {};
  });
}

ridge_status ridge_cancel(ridge_model* model, int64_t id) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    const std::lock_guard lock(model->mutex);
    settle(*model);
    if (model->generating.count(id) > 0 || model->running.erase(id) == 0)
      return not_found("id is ", id, ": no request of that id is running");
    model->session->engine().cancel(id);
    std::erase_if(model->waiting, [&](const TokenEvent& e) { return e.request == id; });
    return {};
  });
}

ridge_status ridge_generate(ridge_model* model, const ridge_request* request, ridge_token_callback callback,
                            void* user, ridge_answer* answer) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    if (answer != nullptr) RIDGE_TRY(check_output(answer, "answer"));
    RIDGE_ASSIGN(Request taken, request_of(*model, request));
    Generation generation(*model);
    RIDGE_TRY(generation.begin(std::move(taken)));
    Status status = generation.run(callback, user);
    if (answer != nullptr && (status.ok() || status.code() == Code::kCancelled))
      write_struct(generation.answer(), answer);
    return status;
  });
}
