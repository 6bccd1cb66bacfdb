#pragma once
// Rows of logits and their parameters for the sample tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "ops/sample/sample.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// `rows` rows that all read the same logits, or each its own; everything off, temperature 1, position = row.
struct SampleRows {
  std::vector<float> logits;
  int64_t count, columns;
  bool shared;
  std::vector<int32_t> ids, status, top_k;
  std::vector<float> logprob, temperature, top_p, min_p;
  std::vector<int64_t> seed, position;
  std::vector<int32_t> history;
  std::vector<float> penalties;
  std::vector<int32_t> bias_ids;
  std::vector<float> bias_values;
  int64_t vocab = 0;

  SampleRows(std::vector<float> logits_in, int64_t columns_in, int64_t shared_by = 0)
      : logits(std::move(logits_in)),
        count(shared_by > 0 ? shared_by : static_cast<int64_t>(logits.size()) / columns_in),
        columns(columns_in),
        shared(shared_by > 0) {
    const auto n = static_cast<size_t>(count);
    ids.assign(n, -7), status.assign(n, -7), logprob.assign(n, 7), top_k.assign(n, 0);
    temperature.assign(n, 1), top_p.assign(n, 1), min_p.assign(n, 0), seed.assign(n, 1);
    for (int64_t r = 0; r < count; ++r) position.push_back(r);
  }
  SampleArgs args() {
    SampleArgs a;
    a.ids = Tensor(ids.data(), {count}), a.status = Tensor(status.data(), {count});
    a.logprob = Tensor(logprob.data(), {count}), a.logits = Tensor(logits.data(), {count, columns});
    if (shared) a.logits.strides[0] = 0;
    a.temperature = Tensor(temperature.data(), {count}), a.top_k = Tensor(top_k.data(), {count});
    a.top_p = Tensor(top_p.data(), {count}), a.min_p = Tensor(min_p.data(), {count});
    a.seed = Tensor(seed.data(), {count}), a.position = Tensor(position.data(), {count});
    const auto width = [&](size_t size) { return static_cast<int64_t>(size) / count; };
    if (!history.empty()) a.history = Tensor(history.data(), {count, width(history.size())});
    if (!penalties.empty()) a.penalties = Tensor(penalties.data(), {count, 3});
    if (!bias_ids.empty()) a.bias_ids = Tensor(bias_ids.data(), {count, width(bias_ids.size())});
    if (!bias_values.empty()) a.bias_values = Tensor(bias_values.data(), {count, width(bias_values.size())});
    a.vocab = vocab;
    return a;
  }
};

inline std::vector<float> normal_logits(int64_t n, uint64_t seed, float spread = 1) {
  Random random(seed);
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = spread * random.normal();
  return out;
}

inline std::vector<float> logs(std::initializer_list<double> p) {
  std::vector<float> out;
  for (const double v : p) out.push_back(static_cast<float>(std::log(v)));
  return out;
}

/// A CPU stream with as much workspace as a call asks for.
class Sampler {
 public:
  explicit Sampler(int threads = 1, Isa isa = Isa::none) {
    CpuOptions options;
    options.threads = threads, options.isa = isa, options.crossover_bytes = 0;
    device_ = CpuDevice::create(options).take();
    stream_ = device_->create_stream().take();
  }
  CpuDevice& device() { return *device_; }
  Stream& stream() { return *stream_; }
  Status run(SampleRows& rows) {
    const SampleArgs a = rows.args();
    const auto selection = registered<SampleArgs>().select(device_->target(), &a);
    if (!selection.ok()) return selection.status();
    if (selection->workspace_bytes > workspace_.bytes()) {
      RIDGE_ASSIGN(workspace_, device_->allocate(selection->workspace_bytes));
    }
    stream_->set_workspace(workspace_.data(), workspace_.bytes());
    return sample(*stream_, a);
  }

 private:
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<Stream> stream_;
  Buffer workspace_;
};

/// How many of `draws` draws (seed fixed, positions from 0) gave each id.
inline std::vector<int64_t> count_draws(Sampler& sampler, SampleRows& rows, int64_t draws) {
  std::vector<int64_t> counts(static_cast<size_t>(rows.columns));
  for (int64_t first = 0; first < draws; first += rows.count) {
    for (int64_t r = 0; r < rows.count; ++r) rows.position[static_cast<size_t>(r)] = first + r;
    const Status ok = sampler.run(rows);
    EXPECT_TRUE(ok.ok()) << ok.message();
    for (int64_t r = 0; r < rows.count; ++r) {
      const int32_t id = rows.ids[static_cast<size_t>(r)];
      EXPECT_EQ(rows.status[static_cast<size_t>(r)], kSampleOk);
      if (id < 0 || id >= rows.columns)
        ADD_FAILURE() << "id " << id;
      else
        ++counts[static_cast<size_t>(id)];
    }
  }
  return counts;
}

/// K29: of 32000 tokens with 64 lanes of NaN and huge numbers behind them, none of the lanes is drawn, and so
/// many tokens are that each thread's part must have been looked at.
inline void expect_no_pad_lane_drawn(Isa isa, int64_t draws, int64_t least_tokens) {
  constexpr int64_t kVocab = 32000, kStride = 32064;
  for (const bool filters : {false, true}) {
    std::vector<float> logits = normal_logits(kStride, 4, 2);
    for (int64_t i = kVocab; i < kStride; ++i) logits[static_cast<size_t>(i)] = i % 2 ? kNan : 1e30f;
    SampleRows rows(logits, kStride, 1000);
    rows.vocab = kVocab;
    if (filters) rows.top_k.assign(1000, 40), rows.top_p.assign(1000, 0.9f), rows.min_p.assign(1000, 0.05f);
    Sampler sampler(allowed_cores(), isa);
    const auto counts = count_draws(sampler, rows, draws);
    for (int64_t i = kVocab; i < kStride; ++i) EXPECT_EQ(counts[static_cast<size_t>(i)], 0);
    EXPECT_GT(std::count_if(counts.begin(), counts.end(), [](int64_t c) { return c > 0; }),
              filters ? 10 : least_tokens);
  }
}

/// Probability that draws from `p` are as far off as `counts` or further, by Pearson's chi-square; 0 when an
/// id of no probability was drawn. Wilson and Hilferty's cube root for the distribution's tail.
inline double chi_square_p(const std::vector<int64_t>& counts, const std::vector<double>& p) {
  double chi = 0, total = 0, classes = 0;
  for (const int64_t c : counts) total += static_cast<double>(c);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (p[i] <= 0) {
      if (counts[i] > 0) return 0;
      continue;
    }
    const double want = p[i] * total, off = static_cast<double>(counts[i]) - want;
    chi += off * off / want, ++classes;
  }
  const double freedom = classes - 1;
  if (freedom < 1) return 1;
  if (freedom == 1) return std::erfc(std::sqrt(chi / 2));
  const double spread = 2 / (9 * freedom);
  return std::erfc((std::cbrt(chi / freedom) - (1 - spread)) / std::sqrt(spread) / std::sqrt(2.0)) / 2;
}

}  // namespace ridge
