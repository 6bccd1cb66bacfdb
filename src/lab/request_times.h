#pragma once
// Times of a request from the spans of its stages.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/observer.h"

namespace ridge {

/// A slice of a request's life, on the clock of now_ns().
struct StageSpan {
  int64_t request = 0;
  Stage stage = Stage::kQueue;
  int64_t begin_ns = 0, end_ns = 0;
};

/// Every figure is a difference of two instants of one clock, or a sum of spans of one stage. Spans come in
/// order, the first at the intended arrival. A network wait before the prompt is the way to the server, one
/// right behind a token the way back.
struct RequestTimes {
  double ttft_us = 0;         // intended arrival to the first token at the client
  double ttft_sent_us = 0;    // the same from the send: without what the client was late
  double ttft_server_us = 0;  // from arrival at the server to the token leaving it
  double prefill_us = 0;      // first scheduled to that token: no time to first token, whatever is taken off
  double queue_us = 0;        // all waiting in queues: a request that is put back waits again
  double tpot_us = 0;         // a further token, the mean; 0: there was none
  double total_us = 0;        // all spans
  int64_t tokens = 0;
  int64_t clock_errors = 0;  // spans that end before they begin: in no figure, and never taken for 0
};
RequestTimes request_times(const std::vector<StageSpan>& stages, int64_t request);

/// Times per further token, a sample each of the requests that had one. An answer of a single token has none,
/// and a request that failed before its first is no answer: neither is a 0 among them.
struct TokenTimes {
  std::vector<double> us;     // in the order of the requests' first spans
  int64_t requests = 0;       // with a token
  int64_t unanswered = 0;     // without: failed before it, or not there yet
  double mean_us() const;     // 0 of none
  bool p99_is_known() const;  // there are enough of them
  /// "P99 81.20 ms", or with too few samples "P99 not estimable (n=20, needs 299)".
  std::string p99_text() const;
};
TokenTimes token_times(const std::vector<StageSpan>& stages);

/// Spans of all requests that end before they begin.
int64_t clock_errors(const std::vector<StageSpan>& stages);

}  // namespace ridge
