#include "lab/request_times.h"

#include <map>
#include <numeric>

#include "base/print_to.h"
#include "base/text.h"
#include "lab/statistics.h"

namespace ridge {

namespace {

double us_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) / 1e3;
}

}  // namespace

RequestTimes request_times(const std::vector<StageSpan>& stages, int64_t request) {
  RequestTimes t;
  int64_t arrived = -1, sent = -1, at_server = -1, scheduled = -1;
  int64_t first_at_server = -1, first = -1, last = -1, token_ns = -1;
  for (const StageSpan& s : stages) {
    if (s.request != request) continue;
    if (s.end_ns < s.begin_ns) {
      ++t.clock_errors;
      continue;
    }
    if (arrived < 0) arrived = sent = at_server = s.begin_ns;
    t.total_us += us_between(s.begin_ns, s.end_ns);
    if (s.stage == Stage::kQueue) t.queue_us += us_between(s.begin_ns, s.end_ns);
    if (s.stage == Stage::kPrefill && scheduled < 0) scheduled = s.begin_ns;
    if (s.stage == Stage::kSampling) {
      ++t.tokens;
      token_ns = last = s.end_ns;
      if (first_at_server < 0) first = first_at_server = s.end_ns;
    }
    if (s.stage != Stage::kNetworkWait) continue;
    if (scheduled < 0) sent = s.begin_ns, at_server = s.end_ns;
    if (s.begin_ns != token_ns) continue;
    last = s.end_ns;
    if (token_ns == first_at_server) first = s.end_ns;
  }
  if (first < 0) return t;
  t.ttft_us = us_between(arrived, first), t.ttft_sent_us = us_between(sent, first);
  t.ttft_server_us = us_between(at_server, first_at_server);
  if (scheduled >= 0) t.prefill_us = us_between(scheduled, first_at_server);
  if (t.tokens > 1) t.tpot_us = us_between(first, last) / static_cast<double>(t.tokens - 1);
  return t;
}

double TokenTimes::mean_us() const {
  return us.empty() ? 0 : std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
}

bool TokenTimes::p99_is_known() const {
  return static_cast<int64_t>(us.size()) >= samples_for_percentile(0.99);
}

std::string TokenTimes::p99_text() const {
  std::string out;
  if (!p99_is_known())
    out = text("P99 not estimable (n=", us.size(), ", needs ", samples_for_percentile(0.99), ")");
  else
    print_to(out, "P99 %.2f ms", percentile(us, 0.99) / 1e3);
  return out;
}

TokenTimes token_times(const std::vector<StageSpan>& stages) {
  std::vector<int64_t> order;
  std::map<int64_t, std::vector<StageSpan>> by_request;
  for (const StageSpan& s : stages) {
    std::vector<StageSpan>& its = by_request[s.request];
    if (its.empty()) order.push_back(s.request);
    its.push_back(s);
  }
  TokenTimes out;
  for (const int64_t request : order) {
    const RequestTimes t = request_times(by_request[request], request);
    ++(t.tokens > 0 ? out.requests : out.unanswered);
    if (t.tokens > 1) out.us.push_back(t.tpot_us);
  }
  return out;
}

int64_t clock_errors(const std::vector<StageSpan>& stages) {
  int64_t errors = 0;
  for (const StageSpan& s : stages) errors += s.end_ns < s.begin_ns;
  return errors;
}

}  // namespace ridge
