#pragma once
// A loaded model behind its C handle: the session, and the events that nobody has taken yet.

#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "capi/boundary.h"
#include "engine/session.h"

struct ridge_model {
  std::unique_ptr<ridge::Session> session;
  ridge_model_info info{};  // struct_size unset

  // Guards what follows and the session's engine; the rest of a session is immutable.
  std::mutex mutex;
  std::set<int64_t> running;              // submitted, and not finished or cancelled
  std::deque<ridge::TokenEvent> waiting;  // for ridge_next_event
  std::map<int64_t, std::deque<ridge::TokenEvent>>
      generating;         // requests of ridge_generate, and their events
  bool stepping = false;  // still set after a step that failed or threw, until settle()
  ridge::Status failed;   // why it failed; ok where it threw
};

namespace ridge::capi {

/// The caller's request as the engine's. Errors: null pointers, sizes, struct_size; ranges are the engine's
/// to check.
Result<Request> request_of(const ridge_model& model, const ridge_request* request);

/// After a step that failed or threw: ends the requests that ran, each with an event that says why, and
/// leaves an engine that takes new ones. Nothing otherwise. The mutex is held; so in step().
void settle(ridge_model& model);
/// One step, its events sorted to those who wait for them.
Status step(ridge_model& model);

}  // namespace ridge::capi
