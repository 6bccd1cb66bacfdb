#include "ops/paged_attention.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <vector>

namespace ridge {

namespace {

struct Slot {
  int64_t page, offset;
};
Slot slot_of(const PagedAttention& a, int64_t sequence, int64_t key) {
  const int64_t page_size = a.k_pages.dim(2);
  return {a.page_table.i64(sequence, key / page_size), key % page_size};
}
/// What the codes of a slot's row are to be multiplied by.
double scale_of(const Tensor& scale, const Slot& s, int64_t kv_head) {
  return scale ? scale.f64(s.page, kv_head, s.offset) : 1;
}
int64_t kv_head_of(const PagedAttention& a, int64_t head) {
  return head / (a.q.dim(1) / a.k_pages.dim(1));
}

struct Scored {
  double score, magnitude;  // after the cap; scale Σ |q k|
};
Scored score_of(const PagedAttention& a, const Slot& s, int64_t row, int64_t head) {
  const int64_t kv_head = kv_head_of(a, head);
  const double k_scale = scale_of(a.k_scale, s, kv_head);
  double dot = 0, magnitude = 0;
  for (int64_t i = 0; i < a.q.dim(2); ++i) {
    const double term = a.q.f64(row, head, i) * (a.k_pages.f64(s.page, kv_head, s.offset, i) * k_scale);
    dot += term, magnitude += std::fabs(term);
  }
  double score = dot * static_cast<double>(a.scale);
  const auto cap = static_cast<double>(a.softcap);
  if (cap > 0) score = cap * std::tanh(score / cap);
  return {score, magnitude * std::fabs(static_cast<double>(a.scale))};
}

constexpr double kUnit = 0x1p-24;

/// What two terms of the pages' type leave of an f32 number, relative: a kernel may multiply by them.
double left_by_terms(DType pages) {
  return pages == kBF16 ? 0x1p-17 : pages == kF16 ? 0x1p-22 : 0;
}

}  // namespace

void attention_reference_row(const PagedAttention& a, int64_t sequence, int64_t row, int64_t head,
                             int64_t position) {
  const int64_t first = a.window > 0 ? std::max<int64_t>(0, position + 1 - a.window) : 0,
                kv_head = kv_head_of(a, head);
  std::vector<double> scores;
  double largest = -HUGE_VAL;
  for (int64_t key = first; key <= position; ++key) {
    scores.push_back(score_of(a, slot_of(a, sequence, key), row, head).score);
    largest = std::max(largest, scores.back());
  }
  double sum = 0;
  for (double& s : scores) s = std::exp(s - largest), sum += s;
  std::vector<double> out(static_cast<size_t>(a.q.dim(2)), 0.0);
  for (int64_t key = first; key <= position; ++key) {
    const Slot s = slot_of(a, sequence, key);
    const double weight = scores[static_cast<size_t>(key - first)], v_scale = scale_of(a.v_scale, s, kv_head);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] += weight * (a.v_pages.f64(s.page, kv_head, s.offset, static_cast<int64_t>(i)) * v_scale);
  }
  for (size_t i = 0; i < out.size(); ++i)
    a.o.set(scores.empty() ? 0 : out[i] / sum, row, head, static_cast<int64_t>(i));
  if (a.lse) a.lse.set(scores.empty() ? -HUGE_VAL : largest + std::log(sum), row, head);
}

bool scales_fit(const PagedAttention& a) {
  return (a.k_pages.dtype == kI8) == static_cast<bool>(a.k_scale) &&
         (a.v_pages.dtype == kI8) == static_cast<bool>(a.v_scale);
}

Status check_attention(const PagedAttention& a) {
  const int64_t heads = a.q.dim(1), kv_heads = a.k_pages.dim(1);
  if (kv_heads == 0 || heads % kv_heads != 0)
    return invalid_argument("q has ", heads, " heads, which ", kv_heads,
                            " kv_heads of k_pages do not divide");
  if (a.k_pages.dim(2) == 0) return invalid_argument("k_pages has page_size 0");
  if (!scales_fit(a))
    return invalid_argument("k_pages is ", dtype_name(a.k_pages.dtype), a.k_scale ? " with" : " without",
                            " k_scale, v_pages ", dtype_name(a.v_pages.dtype),
                            a.v_scale ? " with" : " without",
                            " v_scale: i8 needs scales, other types have none");
  if (a.window < 0)
    return invalid_argument("window is ", a.window, ", needs to be at least 0 (0: no window)");
  if (!std::isfinite(a.scale)) return invalid_argument("scale is ", a.scale, ", needs a finite number");
  if (!(a.softcap >= 0) || !std::isfinite(a.softcap))
    return invalid_argument("softcap is ", a.softcap, ", needs a finite number of at least 0 (0: no cap)");
  return {};
}

void prepare_pages(PagedAttention& a, Random& random, const std::vector<int64_t>& lengths) {
  const int64_t page_size = a.k_pages.dim(2), head_dim = a.k_pages.dim(3);
  std::vector<int64_t> free;
  for (int64_t p = 0; p < a.k_pages.dim(0); ++p) free.push_back(p);
  std::vector<bool> live(static_cast<size_t>(a.k_pages.dim(0) * page_size), false);
  for (size_t s = 0; s < lengths.size(); ++s) {
    const auto row = static_cast<int64_t>(s);
    a.kv_length.set(static_cast<double>(lengths[s]), row);
    for (int64_t i = 0; i * page_size < lengths[s]; ++i) {
      const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(free.size())));
      a.page_table.set(static_cast<double>(free[at]), row, i);
      for (int64_t k = 0; k < std::min(page_size, lengths[s] - i * page_size); ++k)
        live[static_cast<size_t>(free[at] * page_size + k)] = true;
      free[at] = free.back(), free.pop_back();
    }
  }
  const auto fill = [&](const Tensor& pages, const Tensor& scale) {
    for (int64_t slot = 0; slot < pages.dim(0) * page_size; ++slot)
      for (int64_t h = 0; h < pages.dim(1); ++h) {
        const bool owned = live[static_cast<size_t>(slot)];
        const int64_t page = slot / page_size, offset = slot % page_size;
        if (scale) scale.set(owned ? 1.0 / 64 + random.uniform() / 64 : std::nan(""), page, h, offset);
        if (owned) continue;
        for (int64_t i = 0; i < head_dim; ++i)
          pages.set(pages.dtype == kI8 ? 127 : std::nan(""), page, h, offset, i);
      }
  };
  fill(a.k_pages, a.k_scale);
  fill(a.v_pages, a.v_scale);
}

void AttentionBound::weigh(const PagedAttention& in, int64_t sequence, int64_t row, int64_t head,
                           int64_t position) {
  row_ = row, head_ = head;
  keys_.clear();
  const int64_t first = in.window > 0 ? std::max<int64_t>(0, position + 1 - in.window) : 0;
  const auto head_dim = static_cast<double>(in.q.dim(2)), cap = static_cast<double>(in.softcap);
  double largest = -HUGE_VAL, least = HUGE_VAL, sum = 0;
  std::vector<double> scores;
  for (int64_t key = first; key <= position; ++key) {
    const Slot slot = slot_of(in, sequence, key);
    const Scored s = score_of(in, slot, row, head);
    scores.push_back(s.score);
    largest = std::max(largest, s.score), least = std::min(least, s.score);
    // q times scale, a chain over head_dim, the key's scale; the cap adds the error of tanh and two
    // roundings.
    keys_.push_back(
        {slot.page, slot.offset, scale_of(in.v_scale, slot, kv_head_of(in, head)), 0,
         (head_dim + 2 + left_by_terms(in.k_pages.dtype) / kUnit) * s.magnitude + (cap > 0 ? 6 * cap : 0)});
  }
  const double blocks =
      std::floor(static_cast<double>(position) / 64) - std::floor(static_cast<double>(first) / 64);
  for (size_t k = 0; k < keys_.size(); ++k) {
    keys_[k].weight = std::exp(scores[k] - largest);
    sum += keys_[k].weight;
    // The difference to the largest is rounded; e^x is off by 2 ulp. Each later block may rescale: the same
    // again.
    keys_[k].error = kUnit * (keys_[k].error + (largest - scores[k]) + 4 + blocks * 6 + (largest - least));
  }
  for (Key& k : keys_) k.weight /= sum;
}

double AttentionBound::output(const PagedAttention& in, double out, int64_t sequence, int64_t row,
                              int64_t head, int64_t position, int64_t i) {
  if (i == 0 || row != row_ || head != head_) weigh(in, sequence, row, head, position);
  const int64_t kv_head = kv_head_of(in, head);
  double weights = 0, values = 0;
  for (const Key& k : keys_) {
    const double v = in.v_pages.f64(k.page, kv_head, k.offset, i) * k.v_scale;
    weights += k.weight * k.error * std::fabs(v - out);
    values += k.weight * std::fabs(v);
  }
  const auto n = static_cast<double>(keys_.size());
  // The chain over the values of a split and its blocks' rescaling; the sum of weights has fewer steps.
  const double chain = std::min(n, 512.0) + 3 * std::ceil(n / 64) + 4;
  return weights + left_by_terms(in.v_pages.dtype) * values +
         kUnit * (chain * values + (8 + n / 64 + 2) * std::fabs(out));
}

double AttentionBound::log_sum(const PagedAttention& in, double lse, int64_t sequence, int64_t row,
                               int64_t head, int64_t position) {
  weigh(in, sequence, row, head, position);
  double weights = 0;
  for (const Key& k : keys_) weights += k.weight * k.error;
  const auto n = static_cast<double>(keys_.size());
  return weights + kUnit * (8 + 2 * n / 64 + 4 * std::fabs(lse) + 2 * std::log(n + 1));
}

std::string attention_shape(const PagedAttention& a) {
  std::string out = text(a.q.dim(0), " q, ", a.q.dim(1), "/", a.k_pages.dim(1), " x ", a.q.dim(2));
  if (a.window > 0) out += text(", window ", a.window);
  return out;
}

std::string attention_lengths(const PagedAttention& a, int64_t keys, int64_t pairs) {
  std::string out;
  constexpr size_t kNamed = 4;
  if (a.chunks == nullptr || a.chunks->empty() || a.chunks->size() > kNamed) {
    out = text(a.kv_length.dim(0), " kv ", keys, pairs == keys ? "" : text(", pairs ", pairs));
    if (a.chunks == nullptr || a.chunks->empty()) return out;
    uint32_t hash = 2166136261u;  // FNV-1a, by number
    for (const QueryChunk& c : *a.chunks)
      for (const int64_t n : {c.tokens, c.past}) hash = (hash ^ static_cast<uint32_t>(n)) * 16777619u;
    char digits[16];
    std::snprintf(digits, sizeof digits, " #%08x", hash);
    return out + digits;
  }
  for (const QueryChunk& c : *a.chunks) out += text(out.empty() ? "" : ", ", c.tokens, " after ", c.past);
  return out;
}

}  // namespace ridge
