#include "advise/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/forced.h"

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

static Result<ForcedText> forced(Device& device, const Model& model, const EngineOptions& options,
                                 size_t tokens) {
  ForcedOptions o;
  o.formats = options.formats, o.kv = options.kv.k_type, o.plan = options.plan;
  o.context = static_cast<int64_t>(tokens);
  return ForcedText::create(device, model, o);
}

Result<QualityCost> quality_cost(Device& device, const Model& model, const EngineOptions& original,
                                 const EngineOptions& changed, const std::vector<int32_t>& text) {
  if (text.empty()) return invalid_argument("a quality cost needs a text of at least 1 token");
  RIDGE_ASSIGN(ForcedText first, forced(device, model, original, text.size()));
  RIDGE_ASSIGN(ForcedText second, forced(device, model, changed, text.size()));
  QualityCost cost;
  int64_t same = 0;
  // In pieces, so that the logits of a long text do not have to fit into memory.
  constexpr size_t kPiece = 128;
  for (size_t begin = 0; begin < text.size(); begin += kPiece) {
    const std::vector<int32_t> piece(
        text.begin() + static_cast<ptrdiff_t>(begin),
        text.begin() + static_cast<ptrdiff_t>(std::min(text.size(), begin + kPiece)));
    RIDGE_ASSIGN(const Tensor before, first.feed(piece));
    RIDGE_ASSIGN(const Tensor after, second.feed(piece));
    for (int64_t i = 0; i < before.dim(0); ++i) {
      const auto vocab = static_cast<size_t>(before.dim(1));
      const std::span<const float> p(before.row<float>(i), vocab), q(after.row<float>(i), vocab);
      const double kl = kl_divergence(p, q);
      cost.kl_mean += kl, cost.kl_max = std::max(cost.kl_max, kl);
      same += std::max_element(p.begin(), p.end()) - p.begin() ==
              std::max_element(q.begin(), q.end()) - q.begin();
      ++cost.tokens;
    }
  }
  cost.measured = true;
  cost.kl_mean /= static_cast<double>(cost.tokens);
  cost.same_top = static_cast<double>(same) / static_cast<double>(cost.tokens);
  return cost;
}

}  // namespace ridge
