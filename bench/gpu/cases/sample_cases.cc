#include <cuda_runtime_api.h>

#include <algorithm>

#include "base/random.h"
#include "base/text.h"
#include "cases/device_case.h"
#include "ops/sample/sample.h"

namespace ridge::cases {

namespace {

/// Rows that share one row of logits, everything off, temperature 1, positions counted from 0.
struct Draws {
  int64_t rows;
  std::vector<int32_t> top_k;
  std::vector<float> temperature, top_p, min_p;
  std::vector<int64_t> seed, position;
  SampleArgs a;

  explicit Draws(int64_t n) : rows(n) {
    const auto size = static_cast<size_t>(n);
    top_k.assign(size, 0), temperature.assign(size, 1), top_p.assign(size, 1), min_p.assign(size, 0),
        seed.assign(size, 42);
    for (int64_t r = 0; r < n; ++r) position.push_back(r);
  }
  void put(Bench& bench, const std::vector<float>& logits, int64_t columns, bool shared) {
    a.logits = bench.upload(logits, {rows, columns});
    if (shared) a.logits.strides[0] = 0;
    a.temperature = bench.upload(temperature, {rows}), a.top_k = bench.upload(top_k, {rows});
    a.top_p = bench.upload(top_p, {rows}), a.min_p = bench.upload(min_p, {rows});
    a.seed = bench.upload(seed, {rows}), a.position = bench.upload(position, {rows});
    a.ids = bench.output(kI32, {rows}), a.status = bench.output(kI32, {rows}),
    a.logprob = bench.output(kF32, {rows});
  }
  std::vector<int32_t> run(Bench& bench) {
    bench.run([&](CudaStream& s) { return sample(s, a); });
    return bench.download<int32_t>(a.ids);
  }
};

/// Pearson's statistic of counts against probabilities; the bound is that of p = 1e-4 (Wilson and Hilferty's
/// cube).
void expect_distribution(Bench& bench, const std::vector<int32_t>& ids, const std::vector<double>& p,
                         const std::string& what) {
  std::vector<double> counts(p.size(), 0);
  for (const int32_t id : ids) {
    bench.expect(id >= 0 && static_cast<size_t>(id) < p.size() && p[id] > 0, text(what, ": drew ", id));
    if (bench.failures() > 0) return;
    counts[id] += 1;
  }
  double statistic = 0, freedom = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    const double want = p[i] * static_cast<double>(ids.size());
    statistic += (counts[i] - want) * (counts[i] - want) / want, freedom += 1;
  }
  const double cube = 1 - 2 / (9 * freedom) + 3.719 * std::sqrt(2 / (9 * freedom));
  bench.expect(statistic <= freedom * cube * cube * cube,
               text(what, ": chi-square ", statistic, " of ", freedom));
}

constexpr int64_t kDraws = 1000000, kRowsOfCall = 10000;

std::vector<int32_t> draw_many(Bench& bench, const std::vector<float>& logits, int32_t top_k, float top_p,
                               int64_t total, int64_t vocab = 0) {
  std::vector<int32_t> all;
  for (int64_t first = 0; first < total; first += kRowsOfCall) {
    Draws draws(kRowsOfCall);
    std::fill(draws.top_k.begin(), draws.top_k.end(), top_k),
        std::fill(draws.top_p.begin(), draws.top_p.end(), top_p);
    for (int64_t r = 0; r < kRowsOfCall; ++r) draws.position[r] = first + r;
    draws.put(bench, logits, static_cast<int64_t>(logits.size()), true);
    draws.a.vocab = vocab;
    const std::vector<int32_t> ids = draws.run(bench);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

void k29_no_id_beyond_the_vocabulary(Bench& bench) {
  const int64_t vocab = 32000, columns = 32064;
  for (const float pad : {1e30f, NAN})
    for (const bool filters : {false, true}) {
      bench.free_memory();
      std::vector<float> logits(columns, pad);
      Random random(29);
      for (int64_t i = 0; i < vocab; ++i) logits[i] = random.normal();
      for (const int32_t id : draw_many(bench, logits, filters ? 500 : 0, filters ? 0.9f : 1, 50000, vocab))
        bench.expect(id >= 0 && id < vocab, text("drew ", id));
      if (bench.failures() > 0) return;
    }
}

void k30_rows_that_are_not_finite(Bench& bench) {
  const int64_t columns = 600;
  for (const float temperature : {0.0f, 1.0f}) {
    Draws draws(5);
    std::fill(draws.temperature.begin(), draws.temperature.end(), temperature);
    std::vector<float> logits(5 * columns, -INFINITY);
    logits[17] = -3;
    for (int64_t i = 2 * columns; i < 4 * columns; ++i) logits[i] = static_cast<float>(i % 7);
    logits[2 * columns + 599] = NAN, logits[3 * columns + 5] = INFINITY;
    logits[4 * columns + 100] = 2;
    draws.put(bench, logits, columns, false);
    const std::vector<int32_t> ids = draws.run(bench), status = bench.download<int32_t>(draws.a.status);
    const int32_t want[] = {17, -1, -1, 5, 100}, statuses[] = {0, kSampleNoCandidate, kSampleNan, 0, 0};
    for (size_t r = 0; r < 5; ++r) {
      bench.expect(ids[r] == want[r], text("row ", r, " drew ", ids[r]));
      bench.expect(status[r] == statuses[r], text("row ", r, " has status ", status[r]));
    }
  }
}

void k31_exactly_k_of_equal_tokens(Bench& bench) {
  const auto log_of = [](std::vector<double> p) {
    std::vector<float> logits;
    for (const double v : p) logits.push_back(static_cast<float>(std::log(v)));
    return logits;
  };
  expect_distribution(bench, draw_many(bench, log_of({.4, .3, .3, 0}), 2, 1, kDraws), {4 / 7., 3 / 7., 0, 0},
                      "k = 2");
  std::vector<double> first(100, 0);
  std::fill_n(first.begin(), 50, .02);
  expect_distribution(bench, draw_many(bench, std::vector<float>(100, 1.5f), 50, 1, kDraws), first,
                      "100 equal, k = 50");
  expect_distribution(bench, draw_many(bench, log_of({.5, .25, .25}), 0, .75f, kDraws), {2 / 3., 1 / 3., 0},
                      "p = .75");
  std::vector<double> half(9000, 0);  // more equal tokens than a list holds
  std::fill_n(half.begin(), 4500, 1 / 4500.);
  expect_distribution(bench, draw_many(bench, std::vector<float>(9000, -2), 4500, 1, 200000), half,
                      "9000 equal, k = 4500");
}

void k32_a_draw_depends_on_seed_and_position_alone(Bench& bench) {
  const int64_t columns = 32768;
  std::vector<float> logits(static_cast<size_t>(64 * columns));
  Random random(32);
  for (float& v : logits) v = random.normal();
  const std::vector<float> row(logits.begin() + 62 * columns, logits.begin() + 63 * columns);
  Draws alone(1);
  alone.position[0] = 5;
  alone.put(bench, row, columns, false);
  const int32_t id = alone.run(bench)[0];
  Draws many(64);
  many.position[62] = 5;
  many.put(bench, logits, columns, false);
  bench.expect(many.run(bench)[62] == id, "the 63rd of 64 draws another id");
  bench.replay([&](CudaStream& s) { return sample(s, many.a); }, 3);
  bench.expect(bench.download<int32_t>(many.a.ids)[62] == id, "a graph's third replay draws another id");
  Draws eight(8);
  eight.put(bench, std::vector<float>(columns, 0), columns, true);
  const std::vector<int32_t> ids = eight.run(bench);
  bench.expect(*std::max_element(ids.begin(), ids.end()) > *std::min_element(ids.begin(), ids.end()),
               "8 positions draw one id");
  Draws negative(1);
  negative.temperature[0] = -1;
  negative.put(bench, row, columns, false);
  bench.expect(negative.run(bench)[0] == -1, "temperature -1 draws");
  bench.expect(bench.download<int32_t>(negative.a.status)[0] == kSampleBadParameter,
               "temperature -1 has no status");
}

double time_us(Bench& bench, const SampleArgs& a) {
  cudaEvent_t begin = nullptr, end = nullptr;
  (void)cudaEventCreate(&begin), (void)cudaEventCreate(&end);
  float best = HUGE_VALF;
  for (int round = 0; round < 6; ++round) {
    (void)cudaEventRecord(begin, bench.stream().native());
    for (int i = 0; i < 10; ++i) bench.must(sample(bench.stream(), a));
    (void)cudaEventRecord(end, bench.stream().native());
    bench.must(bench.stream().synchronize());
    float ms = 0;
    (void)cudaEventElapsedTime(&ms, begin, end);
    best = std::min(best, ms * 100);
  }
  (void)cudaEventDestroy(begin), (void)cudaEventDestroy(end);
  return static_cast<double>(best);
}

void k33_the_vocabulary_is_not_sorted(Bench& bench) {
  const int64_t columns = 154880;
  std::vector<float> logits(static_cast<size_t>(columns));
  Random random(33);
  for (float& v : logits) v = 3 * random.normal();
  double us[2];
  for (const int32_t k : {0, 40}) {
    Draws draws(16);
    std::fill(draws.top_k.begin(), draws.top_k.end(), k);
    draws.put(bench, logits, columns, true);
    us[k != 0] = time_us(bench, draws.a);
  }
  std::printf("     top_k 0 %.1f us, top_k 40 %.1f us, 16 rows of %lld\n", us[0], us[1],
              static_cast<long long>(columns));
  bench.expect(us[0] <= 1.5 * us[1], text("top_k 0 takes ", us[0], " us, top_k 40 ", us[1]));
}

}  // namespace

std::vector<DeviceCase> sample_cases() {
  return {{"K29", k29_no_id_beyond_the_vocabulary, kLarge},
          {"K30", k30_rows_that_are_not_finite},
          {"K31", k31_exactly_k_of_equal_tokens, kLarge},
          {"K32", k32_a_draw_depends_on_seed_and_position_alone, kLarge},
          {"K33", k33_the_vocabulary_is_not_sorted, kLarge}};
}

}  // namespace ridge::cases
