// Limit: read bandwidth of the logits' cache level for greedy rows (one pass: largest, sum of exponentials),
// exponentials otherwise. Filters: ops/sample/filter.h.

#include "ops/sample/filter.h"
#include "ops/sample/sample.h"

namespace ridge::RIDGE_ISA {

namespace {

using namespace sampling;

constexpr double kShortfall = 0x1p-20;  // see sample.h, step 6

int64_t live_columns(const SampleArgs& a) {
  return a.vocab == 0 ? a.logits.dim(1) : a.vocab;
}

/// Scratch of one row at a time.
struct Scratch {
  Partial* partials;  // [blocks]
  uint64_t* keys;     // [columns]
  float* adjusted;    // [columns]

  static int64_t blocks(int64_t columns) { return (columns + kBlock - 1) / kBlock; }
  static int64_t bytes(int64_t columns) {
    const int64_t used = blocks(columns) * static_cast<int64_t>(sizeof(Partial)) + columns * 12;
    return (used / 64 + 1) * 64;  // never 0
  }
  Scratch(std::byte* memory, int64_t columns)
      : partials(reinterpret_cast<Partial*>(memory)),
        keys(reinterpret_cast<uint64_t*>(partials + blocks(columns))),
        adjusted(reinterpret_cast<float*>(keys + columns)) {}
};

bool finite_within(float v, float low, float high) {
  return v >= low && v <= high;
}

int32_t examine(const SampleArgs& a, int64_t r) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!finite_within(a.temperature.as<float>()[r], 0, kMost) || a.top_k.as<int32_t>()[r] < 0 ||
      !finite_within(a.top_p.as<float>()[r], 0, 1) || !finite_within(a.min_p.as<float>()[r], 0, 1))
    return kSampleBadParameter;
  if (a.penalties) {
    const float* p = a.penalties.row<float>(r);
    if (!finite_within(p[0], 0, kMost) || !finite_within(p[1], kLowest, kMost) ||
        !finite_within(p[2], kLowest, kMost))
      return kSampleBadParameter;
  }
  return kSampleOk;
}

/// Ids before the first -1; -1 when one is outside the vocabulary.
int64_t used_ids(const Tensor& ids, int64_t r, int64_t columns) {
  if (!ids) return 0;
  const int32_t* p = ids.row<int32_t>(r);
  int64_t n = 0;
  for (; n < ids.dim(1) && p[n] != -1; ++n)
    if (p[n] < 0 || p[n] >= columns) return -1;
  return n;
}

bool penalizes(const SampleArgs& a, int64_t r) {
  if (!a.penalties) return false;
  const float* p = a.penalties.row<float>(r);
  return (p[0] != 0 && p[0] != 1) || p[1] != 0 || p[2] != 0;
}

/// Penalties and biases on a copy of the row; `occurrences` [columns] is scratch. False: a NaN came of it.
bool adjust(const SampleArgs& a, int64_t r, int64_t history, int64_t biases, float* x, int32_t* occurrences) {
  bool good = true;
  if (history > 0) {
    const int32_t* ids = a.history.row<int32_t>(r);
    const float* p = a.penalties.row<float>(r);
    const double repetition = p[0] == 0 ? 1.0 : static_cast<double>(p[0]);
    for (int64_t i = 0; i < history; ++i) occurrences[ids[i]] = 0;
    for (int64_t i = 0; i < history; ++i) ++occurrences[ids[i]];
    for (int64_t i = 0; i < history; ++i) {
      const int32_t times = std::exchange(occurrences[ids[i]], 0);
      if (times == 0) continue;
      const auto v = static_cast<double>(x[ids[i]]);
      const double repeated = v > 0 ? v / repetition : v * repetition;
      x[ids[i]] =
          static_cast<float>(repeated - static_cast<double>(p[1]) - static_cast<double>(p[2]) * times);
      good &= !std::isnan(x[ids[i]]);
    }
  }
  for (int64_t i = 0; i < biases; ++i) {
    float& v = x[a.bias_ids.row<int32_t>(r)[i]];
    v = static_cast<float>(static_cast<double>(v) + static_cast<double>(a.bias_values.row<float>(r)[i]));
    good &= !std::isnan(v);
  }
  return good;
}

float largest_of(const Partial* partials, int64_t columns) {
  float largest = -kInfinity;
  for (int64_t b = 0; b * kBlock < columns; ++b) largest = std::max(largest, partials[b].largest);
  return largest;
}

/// The raw row's log-sum-exp in two parts, so that the chosen logit is compared with the largest exactly.
struct LogSum {
  double largest, log_sum;
  double logprob(float chosen) const {
    if (chosen == -kInfinity) return -HUGE_VAL;
    return (static_cast<double>(chosen) == largest ? 0 : static_cast<double>(chosen) - largest) - log_sum;
  }
};

LogSum combine(const Partial* partials, int64_t columns) {
  LogSum out{static_cast<double>(largest_of(partials, columns)), 0};
  double sum = 0;
  for (int64_t b = 0; b * kBlock < columns; ++b) {
    const Partial& p = partials[b];
    if (std::isinf(out.largest))
      sum += static_cast<double>(p.infinite);
    else
      sum += p.from(p.sum, out.largest, 1);
  }
  out.log_sum = std::log(sum);
  return out;
}

int64_t first_largest(const Row& row) {
  int64_t b = 0;
  while (row.partials[b].largest != row.weight.largest) ++b;
  int64_t i = b * kBlock;
  while (row.x[i] != row.weight.largest) ++i;
  return i;
}

/// Adds weights in ascending order of id until their sum exceeds a target.
class Walk {
 public:
  Walk(double running, double target) : running_(running), target_(target) {}
  /// `id_at(j)` is the id of lane j.
  template <class IdAt>
  void add(simd::F32 lanes, int live, const IdAt& id_at) {
    if (past_) return;
    float weights[simd::kLanes];
    simd::store(weights, lanes);
    for (int j = 0; j < live && !past_; ++j) {
      if (weights[j] <= 0) continue;
      id_ = id_at(j);
      running_ += static_cast<double>(weights[j]);
      past_ = running_ > target_;
    }
  }
  /// Where the target was passed, or, when rounding left that out, the last with any weight.
  int64_t id() const { return id_; }

 private:
  double running_, target_;
  int64_t id_ = -1;
  bool past_ = false;
};

int64_t draw_listed(const Row& row, const Kept& kept, double u) {
  uint64_t* const end = std::remove_if(row.keys, row.keys + kept.listed,
                                       [&](uint64_t key) { return value_of(key) < kept.cut.at; });
  std::sort(row.keys, end, [](uint64_t x, uint64_t y) { return id_of(x) < id_of(y); });
  const int64_t n = end - row.keys;
  Walk walk(0, u * weight_sum(row.keys, n, row.weight));
  for_each_weight(row.keys, n, row.weight, [&](simd::F32 weights, int64_t i, int live) {
    walk.add(weights, live, [&](int j) { return id_of(row.keys[i + j]); });
  });
  return walk.id();
}

/// Leaves the weights of what `cut` keeps in the blocks' sums.
void sum_blocks(const Crew& crew, const Row& row, const Cut& cut) {
  if (row.has_sums) {
    for (int64_t b = 0; b * kBlock < row.columns; ++b) {
      Partial& p = row.partials[b];
      p.sum = p.from(row.scale == 1 ? p.sum : p.tempered, static_cast<double>(row.weight.largest),
                     static_cast<double>(row.scale));
    }
    return;
  }
  crew.for_each_block(row.columns, [&](int64_t b, int64_t first, int64_t n) {
    Partial& p = row.partials[b];
    p.sum = 0;
    if (p.largest < cut.at) return;
    for_each_part(cut, first, n, [&](int64_t from, int64_t size, float least) {
      p.sum += weight_sum(row.x + from, size, row.weight, least);
    });
  });
}

int64_t draw_anywhere(const Crew& crew, const Row& row, const Cut& cut, double u) {
  sum_blocks(crew, row, cut);
  const int64_t blocks = Scratch::blocks(row.columns);
  double total = 0, before = 0, running = 0;
  int64_t chosen = 0;  // the block that passes the target, or the last with any weight
  for (int64_t b = 0; b < blocks; ++b) total += row.partials[b].sum;
  for (int64_t b = 0; b < blocks && running <= u * total; ++b) {
    if (row.partials[b].sum > 0) chosen = b, before = running;
    running += row.partials[b].sum;
  }
  Walk walk(before, u * total);
  const int64_t begin = chosen * kBlock;
  for_each_part(cut, begin, std::min(kBlock, row.columns - begin),
                [&](int64_t from, int64_t size, float least) {
                  simd::for_each(size, [&](int64_t i, int live) {
                    const simd::F32 v = load_live(row.x + from + i, live);
                    const simd::F32 weights = simd::zero_where_less(v, simd::set1(least), row.weight(v));
                    walk.add(weights, live, [&](int j) { return from + i + j; });
                  });
                });
  return walk.id();
}

double uniform(uint64_t key, uint64_t counter) {
  const Philox4 words = philox(key, counter);
  return static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
}

/// The least f32 logit whose weight is at least `least`.
float lowest_with_weight(const Row& row, double least) {
  if (row.weight.largest == kInfinity) return kInfinity;
  const double at =
      static_cast<double>(row.weight.largest) + static_cast<double>(row.scale) * std::log(least);
  if (at <= static_cast<double>(kLowest)) return kLowest;
  const auto rounded = static_cast<float>(at);
  return static_cast<double>(rounded) < at ? next_up(rounded) : rounded;
}

bool filters(const SampleArgs& a, int64_t r, int64_t columns) {
  const int32_t top_k = a.top_k.as<int32_t>()[r];
  return (top_k > 0 && top_k < columns) || a.top_p.as<float>()[r] < 1 || a.min_p.as<float>()[r] > 0;
}

/// log2(e) / temperature. Temperatures below 2^-127 have no finite rate; the largest one separates any two
/// logits as well.
float rate_of(float temperature) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::min(kLog2E / static_cast<double>(temperature), kMost));
}

int64_t choose(const Crew& crew, const SampleArgs& a, int64_t r, const Row& row) {
  if (row.scale == 0) return first_largest(row);
  Kept kept{{kLowest, row.columns - 1}};  // -inf has no weight
  const int32_t top_k = a.top_k.as<int32_t>()[r];
  const auto top_p = static_cast<double>(a.top_p.as<float>()[r]);
  const auto min_p = static_cast<double>(a.min_p.as<float>()[r]);
  if (top_k > 0 && top_k < row.columns) keep_largest(crew, row, top_k, &kept);
  if (top_p < 1) keep_mass(crew, row, top_p * (1 - kShortfall), &kept);
  if (min_p > 0) {
    const float least = lowest_with_weight(row, min_p * (1 - kShortfall));
    if (least > kept.cut.at) kept.cut = {least, row.columns - 1};
  }
  const double u = uniform(static_cast<uint64_t>(a.seed.as<int64_t>()[r]),
                           static_cast<uint64_t>(a.position.as<int64_t>()[r]));
  return kept.listed >= 0 ? draw_listed(row, kept, u) : draw_anywhere(crew, row, kept.cut, u);
}

int32_t sample_row(const Crew& crew, const SampleArgs& a, int64_t r, const Scratch& scratch, int64_t* id,
                   float* logprob) {
  if (const int32_t status = examine(a, r); status != kSampleOk) return status;
  const int64_t columns = live_columns(a);
  const float* raw = a.logits.row<float>(r);
  int64_t history = used_ids(a.history, r, columns);
  const int64_t biases = used_ids(a.bias_ids, r, columns);
  if (history < 0 || biases < 0) return kSampleBadId;
  if (!penalizes(a, r)) history = 0;
  Partial* partials = scratch.partials;
  const float temperature = a.temperature.as<float>()[r];
  // With nothing to change or filter, the first pass sums what the draw needs.
  const bool plain = history == 0 && biases == 0 && temperature > 0 && !filters(a, r, columns);
  const float rate = plain && temperature != 1 ? rate_of(temperature) : 0;
  crew.for_each_block(
      columns, [&](int64_t b, int64_t first, int64_t n) { block_stats(raw + first, n, rate, &partials[b]); });
  for (int64_t b = 0; b < Scratch::blocks(columns); ++b)
    if (partials[b].nan) return kSampleNan;
  const LogSum log_sum = combine(partials, columns);
  Row row{raw, columns, {}, temperature, plain, partials, scratch.keys};
  if (history > 0 || biases > 0) {
    std::copy_n(raw, columns, scratch.adjusted);
    if (!adjust(a, r, history, biases, scratch.adjusted, reinterpret_cast<int32_t*>(scratch.keys)))
      return kSampleNan;
    row.x = scratch.adjusted;
    crew.for_each_block(
        columns, [&](int64_t b, int64_t first, int64_t n) { block_largest(row.x + first, n, &partials[b]); });
  }
  row.weight.largest = largest_of(partials, columns);
  if (row.weight.largest == -kInfinity) return kSampleNoCandidate;
  row.has_sums &= row.weight.largest != kInfinity;
  row.weight.rate = rate_of(row.scale);
  *id = choose(crew, a, r, row);
  *logprob = static_cast<float>(log_sum.logprob(raw[*id]));
  return kSampleOk;
}

Decline declines(const SampleArgs& a) {
  const auto strided = [](const Tensor& t, const char* name) {
    return t && !t.rows_are_dense() ? decline(name, " has strides along its last dim: copy it") : Decline{};
  };
  const std::pair<const Tensor*, const char*> operands[] = {{&a.ids, "ids"},
                                                            {&a.status, "status"},
                                                            {&a.logprob, "logprob"},
                                                            {&a.logits, "logits"},
                                                            {&a.temperature, "temperature"},
                                                            {&a.top_k, "top_k"},
                                                            {&a.top_p, "top_p"},
                                                            {&a.min_p, "min_p"},
                                                            {&a.seed, "seed"},
                                                            {&a.position, "position"},
                                                            {&a.history, "history"},
                                                            {&a.penalties, "penalties"},
                                                            {&a.bias_ids, "bias_ids"},
                                                            {&a.bias_values, "bias_values"}};
  for (const auto& [t, name] : operands)
    if (Decline no = strided(*t, name)) return no;
  return {};
}

// As many rows at a time as there can be threads.
int64_t workspace(const SampleArgs& a) {
  static const int64_t cores = allowed_cores();
  return std::min(a.logits.dim(0), cores) * Scratch::bytes(a.logits.dim(1));
}

Status run(Stream& stream, const SampleArgs& a) {
  CpuStream& cpu = as_cpu(stream);
  const int64_t rows = a.logits.dim(0), columns = a.logits.dim(1);
  if (rows == 0) return {};
  auto* memory = static_cast<std::byte*>(stream.workspace());
  const auto one = [&](const Crew& crew, int64_t r, std::byte* scratch) {
    int64_t id = -1;
    float logprob = std::numeric_limits<float>::quiet_NaN();
    a.status.as<int32_t>()[r] = sample_row(crew, a, r, Scratch(scratch, columns), &id, &logprob);
    a.ids.as<int32_t>()[r] = static_cast<int32_t>(id);
    a.logprob.as<float>()[r] = logprob;
  };
  const int64_t threads = std::min<int64_t>(cpu.threads(), workspace(a) / Scratch::bytes(columns));
  if (rows < cpu.threads() || threads <= 1) {
    for (int64_t r = 0; r < rows; ++r) one(Crew(&cpu), r, memory);
    return {};
  }
  cpu.team().run(static_cast<int>(threads), [&](int thread) {
    for (int64_t r = rows * thread / threads; r < rows * (thread + 1) / threads; ++r)
      one(Crew(nullptr), r, memory + thread * Scratch::bytes(columns));
  });
  return {};
}

}  // namespace

void sample_cpu(Kernels<SampleArgs>& kernels) {
  Kernel<SampleArgs> kernel;
  kernel.name = "sample_by_threshold", kernel.declines = declines, kernel.run = run;
  kernel.workspace = workspace;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::RIDGE_ISA
