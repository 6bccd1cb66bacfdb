#include "advise/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ridge {

double kl_divergence(std::span<const float> p, std::span<const float> q) {
  const auto log_sum = [](std::span<const float> x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) sum += std::exp(v - top);
    return top + std::log(sum);
  };
  if (p.empty() || p.size() != q.size()) return std::numeric_limits<double>::quiet_NaN();
  const double p_sum = log_sum(p), q_sum = log_sum(q);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_sum;
    if (!std::isinf(log_p)) kl += std::exp(log_p) * (log_p - (q[i] - q_sum));
  }
  return std::max(0.0, kl);  // rounding alone can take it below
}

/// Logits of the token after `prefix`.
static Result<std::vector<float>> next_logits(InferenceEngine& engine, std::vector<int32_t> prefix) {
  Request request;
  request.prompt = std::move(prefix);
  request.max_new_tokens = 1;
  RIDGE_TRY(engine.submit(std::move(request)).status());
  std::vector<float> logits;
  while (!engine.idle()) {
    RIDGE_ASSIGN(const auto events, engine.step());
    for (const TokenEvent& e : events) {
      if (e.finish == Finish::kError) return e.error;
      const Tensor all = engine.last_logits();
      logits.assign(all.as<float>(), all.as<float>() + all.dim(1));
    }
  }
  return logits;
}

Result<QualityCost> quality_cost(InferenceEngine& original, InferenceEngine& changed,
                                 const std::vector<int32_t>& text, int64_t tokens) {
  QualityCost cost;
  int64_t same = 0;
  const int64_t longest = std::min<int64_t>(tokens, static_cast<int64_t>(text.size()));
  for (int64_t n = 2; n <= longest; ++n) {
    const std::vector<int32_t> prefix(text.begin(), text.begin() + n);
    RIDGE_ASSIGN(const std::vector<float> p, next_logits(original, prefix));
    RIDGE_ASSIGN(const std::vector<float> q, next_logits(changed, prefix));
    const double kl = kl_divergence(p, q);
    cost.kl_mean += kl, cost.kl_max = std::max(cost.kl_max, kl);
    same +=
        std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin();
    ++cost.tokens;
  }
  if (cost.tokens == 0) return invalid_argument("a quality cost needs a text of at least 2 tokens");
  cost.measured = true;
  cost.kl_mean /= static_cast<double>(cost.tokens);
  cost.same_top = static_cast<double>(same) / static_cast<double>(cost.tokens);
  return cost;
}

}  // namespace ridge
